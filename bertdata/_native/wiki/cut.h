// Cutting out what pairs of marks enclose, as WikiExtractor balances them (it can take too much along).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/scan.h"

namespace bertdata::wiki {

// Bytes [begin, end) of a text. Begin is npos where nothing was found.
struct Span {
  size_t begin = npos, end = npos;

  bool found() const { return begin != npos; }
};

// A fixed text of two bytes or more as a mark.
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

// The ranges to drop, in order and disjoint. Marks have `Span next(text, from)`: the first one that begins
// at from or later. Each search begins where the last mark of its kind ends, so the work is linear.
template <class Opener, class Closer>
std::vector<Span> cut_ranges(std::string_view text, Opener&& opener, Closer&& closer) {
  std::vector<Span> cuts;
  Span start = opener.next(text, 0), open = start;
  if (!start.found()) return cuts;
  Span close = closer.next(text, start.end);
  size_t depth = 0;
  while (close.found()) {
    open = opener.next(text, open.end);
    if (!open.found()) {
      for (; depth > 0; --depth) {
        const Span next = closer.next(text, close.end);
        if (!next.found()) break;
        close = next;
      }
      cuts.push_back({start.begin, close.end});
      return cuts;
    }
    bool fresh = false;  // whether this opener begins the next range
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
      if (!next.found()) {  // one range for all: from the first one's begin to the last closer
        const size_t begin = cuts.empty() ? start.begin : cuts.front().begin;
        return {{begin, close.end}};
      }
      close = next;
    }
    if (!fresh) ++depth;
  }
  return cuts;
}

// The text without these ranges, which are in order and disjoint.
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
