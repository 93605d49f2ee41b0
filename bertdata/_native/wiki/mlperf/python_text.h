// Operations of Python's str: slices by characters, replacement, repr, and conversion to float.
#pragma once

#include <algorithm>
#include <cmath>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unicode/unicode.h"
#include "wiki/mlperf/numbers.h"
#include "wiki/work.h"

namespace bertdata::wiki::mlperf {

// Returns the byte offset of the character with this index. A negative index counts from the end, and stops at 0.
// Returns npos if the text has fewer characters.
inline size_t byte_offset(std::string_view text, int64_t index) {
  if (index < 0) {
    size_t pos = text.size();
    for (; index < 0 && pos > 0; ++index) pos -= decode_before(text, pos).length;
    return pos;
  }
  size_t pos = 0;
  for (; index > 0 && pos < text.size(); --index) pos += decode_at(text, pos).length;
  return index > 0 ? npos : pos;
}

// Returns Python's text[begin:end].
inline std::string_view slice(std::string_view text, int64_t begin, int64_t end) {
  const size_t first = std::min(byte_offset(text, begin), text.size());
  const size_t last = std::min(byte_offset(text, end), text.size());
  return first < last ? text.substr(first, last - first) : std::string_view();
}

// Returns Python's text.replace(pattern, with, most). An empty pattern matches before each character and at the end.
inline std::string replaced(std::string_view text, std::string_view pattern, std::string_view with, int64_t most,
                            Work& work) {
  std::string out;
  size_t behind = 0;
  const auto put = [&](size_t at, size_t next) {
    work.spend(with.size() + 1);
    out.append(text, behind, at - behind);
    out.append(with);
    work.grow(out.size());
    behind = at;
    if (next > at && !pattern.empty()) behind = next;
  };
  work.spend(text.size());
  if (pattern.empty()) {
    size_t pos = 0;
    for (; most > 0; --most) {
      put(pos, pos);
      if (pos >= text.size()) break;
      pos += decode_at(text, pos).length;
    }
  } else {
    size_t at = text.find(pattern);
    for (; at != npos && most > 0; --most) {
      put(at, at + pattern.size());
      at = text.find(pattern, behind);
    }
  }
  out.append(text, behind, npos);
  work.grow(out.size());
  return out;
}

// Replaces digits of any script by ASCII digits and removes underscores between digits. Returns nullopt for any other
// character beyond ASCII and for any other underscore.
inline std::optional<std::string> plain_digits(std::string_view text) {
  const Words& words = Words::unicode11();
  const auto is_digit_at = [&](size_t pos) {
    return pos < text.size() && words.digit(decode_at(text, pos).cp) >= 0;
  };
  std::string plain;
  bool after_digit = false;
  for (size_t pos = 0; pos < text.size();) {
    const Character at = decode_at(text, pos);
    const int digit = words.digit(at.cp);
    if (digit >= 0)
      plain += static_cast<char>('0' + digit);
    else if (at.cp == '_' && (!after_digit || !is_digit_at(pos + 1)))
      return std::nullopt;
    else if (at.cp >= 0x80)
      return std::nullopt;
    else if (at.cp != '_')
      plain += lower_ascii(text[pos]);
    after_digit = digit >= 0;
    pos += at.length;
  }
  return plain;
}

// Returns whether the text is a decimal number: digits with at most one point, and an optional exponent.
inline bool is_decimal_number(std::string_view text) {
  size_t pos = 0;
  const auto skip_sign = [&] { pos += pos < text.size() && (text[pos] == '+' || text[pos] == '-'); };
  const auto skip_digits = [&] {
    const size_t begin = pos;
    while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9') ++pos;
    return pos - begin;
  };
  skip_sign();
  size_t digits = skip_digits();
  if (pos < text.size() && text[pos] == '.') {
    ++pos;
    digits += skip_digits();
  }
  if (digits == 0) return false;
  if (pos < text.size() && text[pos] == 'e') {
    ++pos;
    skip_sign();
    if (skip_digits() == 0) return false;
  }
  return pos == text.size();
}

// Returns Python's float(text) if it is finite, or nullopt if the text is no number or is infinite.
inline std::optional<double> read_float(std::string_view text) {
  const auto plain = plain_digits(strip(text));
  if (!plain || !is_decimal_number(*plain)) return std::nullopt;
  std::istringstream stream(*plain);
  stream.imbue(std::locale::classic());
  double value = 0;
  stream >> value;
  const bool too_large = stream.fail() && std::abs(value) > 1;
  return too_large ? std::nullopt : std::optional(value);
}

// Returns whether Python's repr shows the character as it is.
inline bool is_printable(uint32_t cp) {
  if (cp < 0x80) return cp >= 32 && cp < 127;
  if (cp >= kNoCharacter || cp == 0x2028 || cp == 0x2029) return false;
  const int category = Properties::get()[cp] & kClassMask;
  return category != kSpace && category != kControl && category != kUnassigned;
}

// Appends Python's repr(text).
inline void append_representation(std::string_view text, Work& work, std::string& out) {
  const char quote = text.find('\'') != npos && text.find('"') == npos ? '"' : '\'';
  const auto escaped = [&](char kind, uint32_t cp, int digits) {
    out += {'\\', kind};
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[cp >> shift & 15];
  };
  work.spend(text.size());
  out += quote;
  for (size_t pos = 0; pos < text.size();) {
    const Character at = decode_at(text, pos);
    if (at.cp == static_cast<uint8_t>(quote) || at.cp == '\\')
      out += {'\\', text[pos]};
    else if (at.cp == '\t' || at.cp == '\n' || at.cp == '\r')
      out += {'\\', at.cp == '\t' ? 't' : at.cp == '\n' ? 'n' : 'r'};
    else if (is_printable(at.cp))
      out.append(text, pos, at.length);
    else if (at.cp < 0x100)
      escaped('x', at.cp, 2);
    else if (at.cp < 0x10000)
      escaped('u', at.cp, 4);
    else
      escaped('U', at.cp, 8);
    work.grow(out.size());
    pos += at.length;
  }
  out += quote;
}

// Returns Python's repr of a dict of strings.
inline std::string representation(const std::vector<std::pair<std::string, std::string>>& items, Work& work) {
  std::string out = "{";
  for (const auto& [name, value] : items) {
    if (out.size() > 1) out += ", ";
    append_representation(name, work, out);
    out += ": ";
    append_representation(value, work, out);
  }
  return out + "}";
}

}  // namespace bertdata::wiki::mlperf
