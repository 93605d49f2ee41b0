// Reads and prints numbers as Python does.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "wiki/characters.h"
#include "wiki/entities.h"

namespace bertdata::wiki::wikiextractor {

// An integer of any size: its digits without leading zeros, "0" for zero.
struct Integer {
  bool negative = false;
  std::string digits;

  std::string text() const { return negative && digits != "0" ? "-" + digits : digits; }

  // Returns whether the value is at most `most`, given as digits, and not below -2**63. Python's str functions take
  // counts of 64 bits, and raise OverflowError for others.
  bool is_count(std::string_view most) const {
    const std::string_view bound = negative ? "9223372036854775808" : most;
    return digits.size() < bound.size() || (digits.size() == bound.size() && digits <= bound);
  }

  // Returns the value, limited to -2**62 to 2**62.
  int64_t clamped() const {
    constexpr int64_t kMost = int64_t{1} << 62;
    if (digits.size() > 18) return negative ? -kMost : kMost;
    int64_t value = 0;
    for (char digit : digits) value = value * 10 + (digit - '0');
    return negative ? -value : value;
  }
};

// Replaces digits of any script by ASCII digits and removes single underscores between digits. Returns nullopt if
// Python's int() and float() would refuse the text.
inline std::optional<std::string> plain_digits(std::string_view text) {
  const Words& words = Words::unicode14();
  std::string out;
  bool after_digit = false;
  for (size_t pos = 0; pos < text.size();) {
    const Character at = decode_at(text, pos);
    const int digit = words.digit(at.cp);
    if (digit >= 0) {
      out += static_cast<char>('0' + digit);
    } else if (at.cp == '_') {
      const bool before_digit = pos + 1 < text.size() && words.digit(decode_at(text, pos + 1).cp) >= 0;
      if (!after_digit || !before_digit) return std::nullopt;
    } else if (at.cp < 0x80) {
      out += static_cast<char>(at.cp);
    } else {
      return std::nullopt;
    }
    after_digit = digit >= 0;
    pos += at.length;
  }
  return out;
}

// Returns Python's int(text).
inline std::optional<Integer> read_integer(std::string_view text) {
  text = strip(text);
  Integer number;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::optional<std::string> digits = plain_digits(text);
  if (!digits || digits->empty() || digits->find_first_not_of("0123456789") != npos) return std::nullopt;
  if (digits->size() > kMaxDecimalDigits) return std::nullopt;
  const size_t first = digits->find_first_not_of('0');
  number.digits = first == npos ? "0" : digits->substr(first);
  return number;
}

// Returns the double nearest to a plain decimal number: infinity or zero if it is out of range.
inline std::optional<double> read_decimal(std::string_view text) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || fault == std::errc::invalid_argument) return std::nullopt;
  if (fault != std::errc::result_out_of_range) return value;
  // from_chars does not say whether the number is too large or too small. The exponent's sign tells, or else whether a
  // nonzero digit comes before the point.
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, mark);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_of("123456789");
  if (first == npos) return 0.0;
  const bool small_exponent = mark + 1 < text.size() && text[mark + 1] == '-';
  const bool has_exponent = mark < text.size();
  const bool large = has_exponent ? !small_exponent : first < point;
  return large ? std::numeric_limits<double>::infinity() : 0.0;
}

// Returns Python's float(text).
inline std::optional<double> read_float(std::string_view text) {
  std::optional<std::string> plain = plain_digits(strip(text));
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view rest = *plain;
  const bool negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (match_name(rest, 0, "nan") == rest.size()) return std::numeric_limits<double>::quiet_NaN();
  for (std::string_view name : {"inf", "infinity"})
    if (match_name(rest, 0, name) == rest.size()) return negative ? -kInfinity : kInfinity;
  if (rest.empty() || rest.find_first_not_of("0123456789.eE+-") != npos || rest[0] == '-' || rest[0] == '+')
    return std::nullopt;
  const size_t mark = rest.find_first_of("eE");
  std::string number(rest);
  if (mark != npos && mark + 1 < rest.size() && rest[mark + 1] == '+') {
    if (mark + 2 >= rest.size() || rest[mark + 2] == '-' || rest[mark + 2] == '+') return std::nullopt;
    number.erase(mark + 1, 1);
  }
  const std::optional<double> value = read_decimal(number);
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

// Returns Python's repr of a float: the shortest digits that are read back as the same value.
inline std::string print_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto scientific = std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t mark = text.find('e');
  std::string digits(1, text[0]);
  if (mark > 2) digits.append(text.substr(2, mark - 2));
  int exponent = 0;
  const size_t sign = text[mark + 1] == '+' ? 1 : 0;  // from_chars does not accept a plus sign
  std::from_chars(text.data() + mark + 1 + sign, end, exponent);
  std::string out = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    const std::string power = std::to_string(std::abs(exponent));
    return out.append(power.size() < 2 ? "0" : "").append(power);
  }
  if (exponent < 0) return out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(digits);
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out.append(digits).append(whole - digits.size(), '0').append(".0");
  return out.append(digits, 0, whole).append(".").append(digits, whole);
}

// Returns all digits of a finite double before the point, and `places` digits after it.
inline std::string exact_digits(double value, int places) {
  std::string buffer(400 + static_cast<size_t>(places), '\0');
  char *const begin = buffer.data(), *const room_end = begin + buffer.size();
  const auto end = std::to_chars(begin, room_end, value, std::chars_format::fixed, places).ptr;
  buffer.resize(static_cast<size_t>(end - begin));
  return buffer;
}

// Returns the text with commas between groups of three digits in its leading digits.
inline std::string with_commas(std::string_view text) {
  size_t begin = !text.empty() && text[0] == '-' ? 1 : 0, end = begin;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  std::string out(text.substr(0, begin));
  for (size_t i = begin; i < end; ++i) {
    if (i > begin && (end - i) % 3 == 0) out += ',';
    out += text[i];
  }
  return out.append(text.substr(end));
}

}  // namespace bertdata::wiki::wikiextractor
