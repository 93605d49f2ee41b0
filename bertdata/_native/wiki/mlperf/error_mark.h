// Recognises the HTML element that marks an error of a parser function.
#pragma once

#include <string_view>

#include "wiki/characters.h"
#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// Returns whether a class attribute's value, which starts at pos, contains the word "error" and is closed by a quote.
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

// Returns whether the text begins with a strong, span, p or div tag that has the class "error".
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
