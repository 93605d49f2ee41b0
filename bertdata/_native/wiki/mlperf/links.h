// Replaces internal links by their labels.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"
#include "wiki/cut.h"

namespace bertdata::wiki::mlperf {

// Finds the outermost balanced links from left to right. A link that is never closed ends the search.
class LinkFinder {
 public:
  explicit LinkFinder(std::string_view text) : text_(text) {}

  // Returns the next link with its brackets, or a span that is not found() at the end of the text.
  Span next() {
    size_t depth = 0, begin = npos;
    while (true) {
      const size_t at = next_mark();
      if (at == npos) return {};
      pos_ = at + 2;
      if (text_[at] == '[') {
        if (depth++ == 0) begin = at;
      } else if (depth > 0 && --depth == 0) {
        return {begin, pos_};
      }
    }
  }

 private:
  // Returns the position of the next "[[" or "]]", or npos.
  size_t next_mark() {
    for (size_t at = pos_;; ++at) {
      at = find_any<'[', ']'>(text_, at);
      if (at == npos || at + 1 >= text_.size()) return npos;
      if (text_[at + 1] == text_[at]) return at;
    }
  }

  std::string_view text_;
  size_t pos_ = 0;
};

inline bool is_kept_namespace(std::string_view name) {
  return name == "w" || name == "wiktionary" || name == "wikt";
}

// Returns whether a link with this title is dropped: its namespace is not one of the few that the original keeps.
inline bool is_dropped_title(std::string_view title) {
  const size_t colon = title.find(':');
  if (colon == npos) return false;
  if (colon > 0) return !is_kept_namespace(title.substr(0, colon));
  const size_t second = title.find(':', 1);
  return second != npos && second > 1 && !is_kept_namespace(title.substr(1, second - 1));
}

// Returns the label of a link whose title ends at `bar`. It starts after the last bar that comes before one of the
// inner links.
// [[File:x.jpg|thumb|see [[A|b]]]] -> "see [[A|b]]"
inline std::string_view find_label(std::string_view inside, size_t bar) {
  size_t cut = bar + 1, from = cut;
  LinkFinder links(inside);
  for (Span link = links.next(); link.found(); link = links.next()) {
    if (link.begin > from) {
      const size_t last = inside.substr(from, link.begin - from).rfind('|');
      if (last != npos) cut = from + last + 1;
    }
    from = link.end;
  }
  return strip(inside.substr(cut));
}

inline void append_link(std::string_view inside, std::string& out) {
  const size_t bar = inside.find('|');
  if (is_dropped_title(bar == npos ? inside : strip_right(inside.substr(0, bar)))) return;
  out += bar == npos ? inside : find_label(inside, bar);
}

inline void replace_internal_links(std::string& text, std::string& spare) {
  const std::string_view in = text;
  LinkFinder links(in);
  Span link = links.next();
  if (!link.found()) return;
  spare.clear();
  size_t behind = 0;
  for (; link.found(); link = links.next()) {
    spare.append(in, behind, link.begin - behind);
    append_link(in.substr(link.begin + 2, link.end - link.begin - 4), spare);
    behind = link.end;
  }
  spare.append(in, behind, npos);
  text.swap(spare);
}

}  // namespace bertdata::wiki::mlperf
