// Python's str.lower() and str.upper() with the data of Unicode 11.0.
#pragma once

#include <string>
#include <string_view>

#include "unicode/unicode.h"
#include "wiki/characters.h"

namespace bertdata::wiki::mlperf {

inline bool is_ascii(std::string_view text) {
  for (char byte : text)
    if (static_cast<uint8_t>(byte) >= 0x80) return false;
  return true;
}

inline Text decode(std::string_view text) {
  Text points;
  for (size_t pos = 0; pos < text.size();) {
    const Character at = decode_at(text, pos);
    points.push_back(at.cp == kNoCharacter ? 0xFFFD : at.cp);
    pos += at.length;
  }
  return points;
}

inline std::string encode(const Text& points) {
  std::string text;
  for (uint32_t cp : points) append_character(cp, text);
  return text;
}

inline std::string lower_case(std::string_view text) {
  if (is_ascii(text)) {
    std::string lowered(text);
    for (char& byte : lowered) byte = lower_ascii(byte);
    return lowered;
  }
  Text lowered;
  lower(decode(text), lowered);
  return encode(lowered);
}

inline std::string upper_case(std::string_view text) {
  if (is_ascii(text)) {
    std::string raised(text);
    for (char& byte : raised)
      if (byte >= 'a' && byte <= 'z') byte = static_cast<char>(byte - 32);
    return raised;
  }
  Text raised;
  for (uint32_t cp : decode(text)) append_mapping(find_mapping(unicode11::k_upper, cp), cp, raised);
  return encode(raised);
}

// Maps only the first character, as Python's x[0].upper() + x[1:] and x[0].lower() + x[1:] do.
inline std::string upper_first(std::string_view text) {
  if (text.empty()) return {};
  const size_t length = decode_at(text, 0).length;
  return upper_case(text.substr(0, length)) + std::string(text.substr(length));
}

inline std::string lower_first(std::string_view text) {
  if (text.empty()) return {};
  const size_t length = decode_at(text, 0).length;
  return lower_case(text.substr(0, length)) + std::string(text.substr(length));
}

}  // namespace bertdata::wiki::mlperf
