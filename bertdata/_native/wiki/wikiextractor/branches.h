// Parser functions that choose one of their arguments or evaluate an expression.
#pragma once

#include <string_view>

#include "wiki/wikiextractor/expression_parser.h"
#include "wiki/wikiextractor/text_functions.h"

namespace bertdata::wiki::wikiextractor {

// Returns whether the attribute value that begins at pos contains the word "error" and is closed by a quote.
inline bool names_error(std::string_view text, size_t pos) {
  constexpr std::string_view kWord = "error";
  const size_t end = text.find_first_of("\">", pos);
  if (end == npos || text[end] != '"') return false;
  const std::string_view value = text.substr(pos, end - pos);
  for (size_t at = value.find(kWord); at != npos; at = value.find(kWord, at + 1)) {
    const bool begins = at == 0 || is_space(decode_before(value, at).cp);
    const size_t after = at + kWord.size();
    if (begins && (after == value.size() || space_at(value, after))) return true;
  }
  return false;
}

// Returns whether the text begins with an element that has the class "error".
inline bool begins_with_error(std::string_view text) {
  if (text.empty() || text[0] != '<') return false;
  const std::string_view tag = text.substr(0, text.find('>'));
  constexpr std::string_view kAttribute = "class=\"";
  for (std::string_view name : {"strong", "span", "p", "div"}) {
    if (!starts_with(text, 1, name) || !space_at(text, 1 + name.size())) continue;
    for (size_t at = tag.find(kAttribute); at != npos; at = tag.find(kAttribute, at + 1))
      if (is_space(decode_before(tag, at).cp) && names_error(text, at + kAttribute.size())) return true;
  }
  return false;
}

// Returns whether one of the pieces between the "|" of a case equals the text.
inline bool has_piece(std::string_view cases, std::string_view text) {
  while (true) {
    const size_t bar = cases.find('|');
    if (strip(cases.substr(0, bar)) == text) return true;
    if (bar == npos) return false;
    cases.remove_prefix(bar + 1);
  }
}

// Returns the value of the first #switch case that matches, else of #default. A case without "=" falls through to the
// next case that has a value.
inline std::string_view choose_case(std::string_view text, Rest rest) {
  std::string_view otherwise;
  bool matched = false;
  for (size_t i = 0; i < rest.count; ++i) {
    const size_t mark = rest[i].find('=');
    const std::string_view left = strip(rest[i].substr(0, mark));
    if (mark == npos) {
      matched |= left == text;
      continue;
    }
    const std::string_view right = strip(rest[i].substr(mark + 1));
    if (matched || has_piece(left, text)) return right;
    if (left == "#default") otherwise = right;
  }
  return otherwise;
}

// Evaluates one of the functions that choose. Returns false if `name` is not one of them. Sets `chosen` to the text to
// be expanded. `room` holds that text if it is not one of the arguments.
inline bool choose_branch(std::string_view name, std::string_view first, Rest rest, std::string_view& chosen,
                          std::string& room) {
  chosen = {};
  if (name == "#if") {
    chosen = strip(rest[first.empty() ? 1 : 0]);
  } else if (name == "#ifeq") {
    if (rest.count < 2 || strip(rest[0]).empty()) return true;
    chosen = strip(rest[first == strip(rest[0]) ? 1 : 2]);
  } else if (name == "#switch") {
    chosen = choose_case(first, rest);
  } else if (name == "#iferror") {
    if (begins_with_error(first))
      chosen = rest[0];
    else
      chosen = rest.count > 1 ? strip(rest[1]) : first;
  } else if (name == "#expr" || name == "#ifexpr") {
    if (name == "#expr" && rest.count > 0) return true;
    bool truth = false;
    room = evaluate_expression(first, &truth);
    chosen = name == "#expr" || room == kErrorSpan ? std::string_view(room) : strip(rest[truth ? 0 : 1]);
  } else {
    return false;
  }
  return true;
}

}  // namespace bertdata::wiki::wikiextractor
