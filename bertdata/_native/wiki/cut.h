// Cuts out the text between pairs of marks with WikiExtractor's way of balancing them, which can cut too much.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/scan.h"

namespace bertdata::wiki {

// The bytes [begin, end) of a text. begin is npos if nothing was found.
struct Span {
  size_t begin = npos, end = npos;

  bool found() const { return begin != npos; }
};

// A fixed string of at least two bytes as a mark.
class LiteralMark {
 public:
  explicit LiteralMark(std::string_view mark) : mark_(mark) {}

  Span next(std::string_view text, size_t from) const {
    const size_t at = find_mark(text, mark_, from);
    return at == npos ? Span{} : Span{at, at + mark_.size()};
  }

 private:
  std::string_view mark_;
};

// Returns the ranges to drop, in order and without overlap.
// Marks have `Span next(text, from)`, which returns the first mark at `from` or later. Each search starts at the end
// of the last mark of its kind, so the work is linear.
// {{a {{b}} c}} -> the whole text is one range
template <class Opener, class Closer>
std::vector<Span> cut_ranges(std::string_view text, Opener&& opener, Closer&& closer) {
  std::vector<Span> cuts;
  Span start = opener.next(text, 0), open = start;
  if (!start.found()) return cuts;
  Span close = closer.next(text, start.end);
  size_t depth = 0;
  while (close.found()) {
    // Look for the next opener. `close` is the closer that would end the current range.
    open = opener.next(text, open.end);
    if (!open.found()) {
      // No opener is left: `depth` further closers belong to the current range, as far as there are any.
      for (; depth > 0; --depth) {
        const Span next = closer.next(text, close.end);
        if (!next.found()) break;
        close = next;
      }
      cuts.push_back({start.begin, close.end});
      return cuts;
    }
    bool fresh = false;  // whether this opener begins the next range
    // Closers before that opener: each closes an inner level, or the range itself at depth 0.
    while (close.end < open.begin) {
      if (depth == 0) {
        cuts.push_back({start.begin, close.end});
        start = open;
        fresh = true;
        close = closer.next(text, open.end);
        break;
      }
      --depth;
      const Span next = closer.next(text, close.end);
      // No closer is left: the original then drops everything from the first range to the last closer.
      if (!next.found()) {
        const size_t begin = cuts.empty() ? start.begin : cuts.front().begin;
        return {{begin, close.end}};
      }
      close = next;
    }
    if (!fresh) ++depth;
  }
  return cuts;
}

// Writes the text without the ranges, which are in order and do not overlap.
inline void drop_ranges(std::string_view text, const std::vector<Span>& ranges, std::string& out) {
  out.clear();
  size_t behind = 0;
  for (const Span& range : ranges) {
    out.append(text, behind, range.begin - behind);
    behind = range.end;
  }
  out.append(text, behind, npos);
}

}  // namespace bertdata::wiki
