// Removes behaviour switches such as __NOTOC__.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// The switches without their first "__".
inline constexpr std::string_view kSwitches[] = {
    "NOTOC__",     "FORCETOC__",          "TOC__",  "NEWSECTIONLINK__", "NONEWSECTIONLINK__", "NOGALLERY__",
    "HIDDENCAT__", "NOCONTENTCONVERT__",  "NOCC__", "NOTITLECONVERT__", "NOTC__",             "START__",
    "END__",       "INDEX__",             "NOINDEX__", "STATICREDIRECT__", "DISAMBIG__"};

// Returns the end of the switch whose first "__" is at `at`, or npos.
inline size_t switch_end(std::string_view text, size_t at) {
  for (std::string_view name : kSwitches)
    if (starts_with(text, at + 2, name)) return at + 2 + name.size();
  return npos;
}

inline void remove_switches(std::string& text, std::string& spare) {
  const std::string_view in = text;
  size_t behind = 0;
  spare.clear();
  for (size_t at = find_mark(in, "__", 0); at != npos;) {
    const size_t end = switch_end(in, at);
    if (end != npos) {
      spare.append(in, behind, at - behind);
      behind = end;
    }
    at = find_mark(in, "__", end == npos ? at + 1 : end);
  }
  if (!behind) return;
  spare.append(in, behind, npos);
  text.swap(spare);
}

}  // namespace bertdata::wiki::mlperf
