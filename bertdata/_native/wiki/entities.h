// Resolves character entities and references as WikiExtractor does: once, from left to right.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "wiki/characters.h"
#include "wiki/entity_names.h"
#include "wiki/scan.h"

namespace bertdata::wiki {

// Python refuses to convert decimal strings with more digits than this.
constexpr size_t kMaxDecimalDigits = 4300;

// Returns the code point of an HTML 4 entity, or kNoCharacter if the name is unknown.
inline uint32_t find_entity(std::string_view name) {
  const auto* found = std::lower_bound(std::begin(kEntityNames), std::end(kEntityNames), name,
                                       [](const EntityName& e, std::string_view n) { return e.name < n; });
  return found != std::end(kEntityNames) && found->name == name ? found->cp : kNoCharacter;
}

// Returns the number that Python's int(digits, base) returns, or kNoCharacter if it fails or is no code point.
// Accepted are digits of any script with single underscores between them. In base 16 "0x" and an underscore may come
// first.
inline uint32_t read_code_point(std::string_view digits, uint32_t base, const Words& words) {
  size_t pos = 0;
  bool after_digit = false;
  if (base == 16 && digits.size() > 1 && digits[0] == '0' && lower_ascii(digits[1]) == 'x') {
    pos = 2;
    after_digit = true;  // an underscore may follow
  }
  uint64_t value = 0;
  size_t count = 0;
  while (pos < digits.size()) {
    if (digits[pos] == '_') {
      if (!after_digit) return kNoCharacter;
      after_digit = false;
      ++pos;
      continue;
    }
    const Character at = decode_at(digits, pos);
    const char letter = at.cp < 0x80 ? lower_ascii(static_cast<char>(at.cp)) : '\0';
    int digit = words.digit(at.cp);
    if (base == 16 && letter >= 'a' && letter <= 'f') digit = letter - 'a' + 10;
    if (digit < 0) return kNoCharacter;
    value = std::min<uint64_t>(value * base + static_cast<uint32_t>(digit), kNoCharacter);
    after_digit = true;
    ++count;
    pos += at.length;
  }
  const bool whole = count > 0 && after_digit && (base == 16 || count <= kMaxDecimalDigits);
  return whole && value < kNoCharacter ? static_cast<uint32_t>(value) : kNoCharacter;
}

// Returns the code point for the text between "&" and ";", or kNoCharacter if the text is to stay as it is.
inline uint32_t resolve_entity(bool is_number, std::string_view name, const Words& words) {
  if (!is_number) return find_entity(name);
  return name[0] == 'x' ? read_code_point(name.substr(1), 16, words) : read_code_point(name, 10, words);
}

// Appends the text with its entities resolved.
inline void append_unescaped(std::string_view text, const Words& words, std::string& out) {
  size_t behind = 0;
  for (size_t at = text.find('&'); at != npos; at = text.find('&', at + 1)) {
    const bool is_number = at + 1 < text.size() && text[at + 1] == '#';
    const size_t begin = at + 1 + is_number, end = words.skip(text, begin);
    if (end == begin || end >= text.size() || text[end] != ';') continue;
    const uint32_t cp = resolve_entity(is_number, text.substr(begin, end - begin), words);
    if (cp == kNoCharacter) continue;
    out.append(text, behind, at - behind);
    append_character(cp, out);
    behind = end + 1;
    at = end;
  }
  out.append(text, behind, npos);
}

// Appends an escaped text with its entities resolved, except that the content of escaped <syntaxhighlight ...> elements
// stays escaped. The tags of these elements are removed.
inline void append_unescaped_but_code(std::string_view text, const Words& words, std::string& out) {
  constexpr std::string_view kOpen = "&lt;syntaxhighlight ", kEnd = "&gt;", kClose = "&lt;/syntaxhighlight&gt;";
  size_t behind = 0;
  if (!holds(text, "syntaxhighlight ")) return append_unescaped(text, words, out);
  for (size_t open = text.find(kOpen); open != npos; open = text.find(kOpen, behind)) {
    const size_t end = text.find(kEnd, open + kOpen.size());
    const size_t close = end == npos ? npos : text.find(kClose, end + kEnd.size());
    if (close == npos) break;
    append_unescaped(text.substr(behind, open - behind), words, out);
    out.append(text, end + kEnd.size(), close - end - kEnd.size());
    behind = close + kClose.size();
  }
  append_unescaped(text.substr(behind), words, out);
}

}  // namespace bertdata::wiki
