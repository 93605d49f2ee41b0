// Python's str.lower() and str.upper() with the data of Unicode 14.0.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "wiki/characters.h"

namespace bertdata::wiki::wikiextractor {

template <class Range, size_t N>
bool is_among(const Range (&ranges)[N], uint32_t cp) {
  const auto* found = std::lower_bound(ranges, ranges + N, cp,
                                       [](const Range& r, uint32_t value) { return r.last < value; });
  return found != ranges + N && found->first <= cp;
}

template <size_t N>
void append_mapped(const unicode14::Mapping (&table)[N], uint32_t cp, std::string& out) {
  const auto* found = std::lower_bound(table, table + N, cp,
                                       [](const unicode14::Mapping& m, uint32_t value) { return m.from < value; });
  if (found == table + N || found->from != cp) return append_character(cp, out);
  for (uint32_t to : found->to)
    if (to) append_character(to, out);
}

// Returns whether the capital sigma (two bytes) at pos ends a word: a cased character comes before it and none after
// it, with case-ignorable characters skipped.
inline bool is_final_sigma(std::string_view text, size_t pos) {
  size_t before = pos;
  uint32_t cp = kNoCharacter;
  while (before > 0) {
    const Character found = decode_before(text, before);
    before -= found.length;
    cp = found.cp;
    if (!is_among(unicode14::k_case_ignorable, cp)) break;
  }
  if (!is_among(unicode14::k_cased, cp) || is_among(unicode14::k_case_ignorable, cp)) return false;
  for (size_t after = pos + 2; after < text.size();) {
    const Character found = decode_at(text, after);
    if (!is_among(unicode14::k_case_ignorable, found.cp)) return !is_among(unicode14::k_cased, found.cp);
    after += found.length;
  }
  return true;
}

inline std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<uint8_t>(text[pos]) < 0x80) {
      out += lower_ascii(text[pos++]);
      continue;
    }
    const Character at = decode_at(text, pos);
    if (at.cp == kNoCharacter)
      out += text[pos];
    else if (at.cp == 0x3A3)
      append_character(is_final_sigma(text, pos) ? 0x3C2 : 0x3C3, out);
    else
      append_mapped(unicode14::k_lower, at.cp, out);
    pos += at.length;
  }
  return out;
}

inline std::string upper_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const char byte = text[pos];
    if (static_cast<uint8_t>(byte) < 0x80) {
      out += byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 32) : byte;
      ++pos;
      continue;
    }
    const Character at = decode_at(text, pos);
    if (at.cp == kNoCharacter)
      out += byte;
    else
      append_mapped(unicode14::k_upper, at.cp, out);
    pos += at.length;
  }
  return out;
}

// Maps only the first character to upper case.
inline std::string upper_first(std::string_view text) {
  if (text.empty()) return {};
  const size_t length = decode_at(text, 0).length;
  return upper_case(text.substr(0, length)).append(text.substr(length));
}

inline std::string lower_first(std::string_view text) {
  if (text.empty()) return {};
  const size_t length = decode_at(text, 0).length;
  return lower_case(text.substr(0, length)).append(text.substr(length));
}

}  // namespace bertdata::wiki::wikiextractor
