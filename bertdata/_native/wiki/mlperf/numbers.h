// Reads integers from text as Python does.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wiki/entities.h"

namespace bertdata::wiki::mlperf {

// Returns Python's int(text) as plain decimal digits, with "-" in front if negative, or nullopt if the text is no
// integer.
// White space at both ends is ignored. Digits of any script and single underscores between digits are accepted.
inline std::optional<std::string> read_integer(std::string_view text) {
  const Words& words = Words::unicode11();
  text = strip(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  std::string digits;
  size_t count = 0;
  bool after_digit = false;
  for (size_t pos = 0; pos < text.size();) {
    if (text[pos] == '_') {
      if (!after_digit) return std::nullopt;
      after_digit = false;
      ++pos;
      continue;
    }
    const Character at = decode_at(text, pos);
    const int digit = words.digit(at.cp);
    if (digit < 0) return std::nullopt;
    if (digit || !digits.empty()) digits += static_cast<char>('0' + digit);
    after_digit = true;
    ++count;
    pos += at.length;
  }
  if (!after_digit || count > kMaxDecimalDigits) return std::nullopt;
  if (digits.empty()) return "0";
  return negative ? "-" + digits : digits;
}

// Value that replaces all integers beyond 62 bits. It is larger than the length of any text.
constexpr int64_t kHuge = int64_t{1} << 61;

// Converts an integer returned by read_integer, limited to -kHuge to kHuge.
inline int64_t clamp_integer(std::string_view digits) {
  const bool negative = !digits.empty() && digits[0] == '-';
  int64_t value = 0;
  for (char digit : digits.substr(negative))
    value = value > kHuge / 10 ? kHuge : std::min(value * 10 + (digit - '0'), kHuge);
  return negative ? -value : value;
}

// Returns whether an integer returned by read_integer fits into 64 bits, as the counts of Python's str methods must.
inline bool fits_count(std::string_view digits) {
  int64_t value;
  return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
}

}  // namespace bertdata::wiki::mlperf
