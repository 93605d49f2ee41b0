// The element that marks an error of a parser function.
#pragma once

#include <string_view>

#include "wiki/characters.h"
#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// Whether a class attribute's value, which begins at pos, has the word "error" and ends.
inline bool has_error_class(std::string_view text, size_t pos) {
  constexpr std::string_view kWord = "error";
  while (true) {
    if (starts_with(text, pos, kWord)) {
      const size_t end = pos + kWord.size();
      if (end < text.size() && text[end] == '"') return true;
      if (space_at(text, end)) {
        const size_t stop = find_any<'"', '>'>(text, end);
        return stop != npos && text[stop] == '"';
      }
    }
    while (pos < text.size() && text[pos] != '"' && text[pos] != '>' && !space_at(text, pos)) ++pos;
    if (!space_at(text, pos)) return false;
    pos = skip_spaces(text, pos);
  }
}

// Whether the text begins with the tag of a strong, span, p or div whose class is an error's.
inline bool begins_with_error(std::string_view text) {
  constexpr std::string_view kClass = "class=\"";
  for (std::string_view tag : {"<strong", "<span", "<p", "<div"}) {
    if (!starts_with(text, 0, tag) || !space_at(text, tag.size())) continue;
    size_t pos = skip_spaces(text, tag.size());
    while (true) {
      if (starts_with(text, pos, kClass) && has_error_class(text, pos + kClass.size())) return true;
      while (pos < text.size() && text[pos] != '>' && !space_at(text, pos)) ++pos;
      if (!space_at(text, pos)) return false;
      pos = skip_spaces(text, pos);
    }
  }
  return false;
}

}  // namespace bertdata::wiki::mlperf
