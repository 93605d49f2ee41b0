// Parser functions that change a text or count in it. Each takes the expanded first argument and the other arguments
// as written. The result nullopt means that the call gives an empty text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wiki/wikiextractor/case_mapping.h"
#include "wiki/wikiextractor/limits.h"
#include "wiki/wikiextractor/numbers.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

using Result = std::optional<std::string>;

// The arguments after the first. Missing arguments are empty.
struct Rest {
  const std::string_view* items;
  size_t count;

  std::string_view operator[](size_t i) const { return i < count ? items[i] : std::string_view(); }
  // Returns argument i as a number, or 0 if it is no number.
  int64_t number(size_t i) const {
    const auto value = read_integer((*this)[i]);
    return value ? value->clamped() : 0;
  }
};

// Returns the byte offset of the n-th character, or the text's size if the text is shorter.
inline size_t offset_of(std::string_view text, int64_t n) {
  size_t pos = 0;
  while (n > 0 && pos < text.size()) {
    ++pos;
    while (pos < text.size() && is_continuation(text[pos])) ++pos;
    --n;
  }
  return pos;
}

// Returns the characters [begin, end) of the text.
inline std::string_view characters(std::string_view text, int64_t begin, int64_t end) {
  if (begin >= end) return {};
  const size_t first = offset_of(text, begin);
  const std::string_view rest = text.substr(first);
  return rest.substr(0, offset_of(rest, end - begin));
}

inline Result url_encode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char byte : text) {
    const auto value = static_cast<uint8_t>(byte);
    const char lower = lower_ascii(byte);
    const bool is_plain = (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
    if (is_plain || std::string_view("_.-~/").find(byte) != npos)
      out += byte;
    else
      out.append("%").append(1, kHex[value >> 4]).append(1, kHex[value & 15]);
  }
  return out;
}

// Appends bytes as UTF-8. Each maximal piece that is no character becomes U+FFFD, as in Python.
inline void append_decoded(std::string_view bytes, std::string& out) {
  for (size_t pos = 0; pos < bytes.size();) {
    const auto lead = static_cast<uint8_t>(bytes[pos]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    size_t good = length ? 1 : 0;
    while (good && good < length && pos + good < bytes.size()) {
      const auto next = static_cast<uint8_t>(bytes[pos + good]);
      const uint8_t least = good > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const uint8_t most = good > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (next < least || next > most) break;
      ++good;
    }
    if (good && good == length)
      out.append(bytes, pos, length);
    else
      out.append("\xEF\xBF\xBD");
    pos += good ? good : 1;
  }
}

inline int hex_digit(char byte) {
  const char lower = lower_ascii(byte);
  return byte >= '0' && byte <= '9' ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Returns the byte that "%XX" at pos encodes, or -1.
inline int percent_byte(std::string_view text, size_t pos) {
  if (text[pos] != '%' || pos + 2 >= text.size()) return -1;
  const int high = hex_digit(text[pos + 1]), low = hex_digit(text[pos + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

inline Result url_decode(std::string_view text) {
  std::string out, bytes;
  for (size_t pos = 0; pos < text.size();) {
    if (static_cast<uint8_t>(text[pos]) >= 0x80) {  // not part of the encoded bytes, so those are decoded first
      append_decoded(bytes, out);
      bytes.clear();
      out += text[pos++];
    } else if (const int byte = percent_byte(text, pos); byte >= 0) {
      bytes += static_cast<char>(byte);
      pos += 3;
    } else {
      bytes += text[pos++];
    }
  }
  append_decoded(bytes, out);
  return out;
}

// Removes commas and replaces Arabic digits by European digits.
inline std::string plain_number(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const Character at = decode_at(text, pos);
    if ((at.cp >= 0x660 && at.cp <= 0x669) || (at.cp >= 0x6F0 && at.cp <= 0x6F9))
      out += static_cast<char>('0' + (at.cp & 15));
    else if (at.cp != ',')
      out.append(text, pos, at.length);
    pos += at.length;
  }
  return std::string(strip(out));
}

inline Result format_number(std::string_view text, Rest rest) {
  if (strip(rest[0]) == "R") return plain_number(text);
  const std::optional<double> value = read_float(text);
  if (!value) return std::string(text);
  if (!std::isfinite(*value)) return std::nullopt;
  if (*value != std::floor(*value)) return with_commas(print_float(*value));
  const std::string digits = exact_digits(*value, 0);
  return with_commas(digits == "-0" ? "0" : digits);
}

inline Result pad(std::string_view text, Rest rest, bool left, Work& work) {
  if (rest.count == 0) return std::nullopt;
  const std::string_view filler = rest.count > 1 ? rest[1] : "0";
  const auto width = read_integer(rest[0]);
  const auto size = static_cast<int64_t>(count_characters(text));
  if (!width || filler.empty() || width->clamped() <= size) return std::string(text);
  int64_t missing = width->clamped() - size;
  const auto unit = static_cast<int64_t>(count_characters(filler));
  if (missing > int64_t{1} << 32) throw Unknown("padding by more than 2**32 characters");
  work.grow(static_cast<size_t>(missing / unit) * filler.size());
  work.spend(static_cast<size_t>(missing / unit) * filler.size());
  std::string padding;
  for (; missing >= unit; missing -= unit) padding.append(filler);
  padding.append(characters(filler, 0, missing));
  return left ? padding.append(text) : std::string(text).append(padding);
}

// Returns the position of the first occurrence at or after a start position, which counts from the end if negative.
inline Result position(std::string_view text, Rest rest) {
  int64_t from = rest.number(1);
  const auto size = static_cast<int64_t>(count_characters(text));
  if (from < 0) from = std::max<int64_t>(from + size, 0);
  if (from > size) return std::string();
  const size_t at = text.find(rest[0], offset_of(text, from));
  return at == npos ? std::string() : std::to_string(count_characters(text.substr(0, at)));
}

inline Result last_position(std::string_view text, Rest rest) {
  const size_t at = text.rfind(rest[0]);
  return at == npos ? "-1" : std::to_string(count_characters(text.substr(0, at)));
}

// Implements PHP's substr.
inline Result substring(std::string_view text, Rest rest) {
  const auto size = static_cast<int64_t>(count_characters(text));
  int64_t begin = rest.number(0);
  if (begin < 0) begin = std::max<int64_t>(begin + size, 0);
  begin = std::min(begin, size);
  int64_t end = size;
  if (!rest[1].empty()) {
    const int64_t length = rest.number(1);
    end = length < 0 ? size + length : std::min(size, begin + length);
  }
  return std::string(characters(text, begin, end));
}

inline Result count(std::string_view text, Rest rest) {
  if (rest[0].empty()) return "0";
  size_t found = 0;
  for (size_t at = text.find(rest[0]); at != npos; at = text.find(rest[0], at + rest[0].size())) ++found;
  return std::to_string(found);
}

inline Result replace(std::string_view text, Rest rest, Work& work) {
  if (rest[0].empty()) return std::string(text);
  const auto limit = read_integer(rest[2]);
  if (limit && !limit->is_count("9223372036854775807")) return std::nullopt;
  int64_t left = limit ? limit->clamped() : -1;
  std::string out;
  size_t behind = 0;
  for (size_t at = text.find(rest[0]); at != npos && left != 0; at = text.find(rest[0], behind), --left) {
    out.append(text, behind, at - behind).append(rest[1]);
    behind = at + rest[0].size();
    work.grow(out.size());
  }
  out.append(text, behind, npos);
  work.spend(out.size());
  return out;
}

// Returns one of the pieces between the delimiters. A negative number counts from the end.
inline Result explode(std::string_view text, Rest rest) {
  const std::string_view mark = rest[0];
  if (mark.empty()) return std::nullopt;
  const auto limit = read_integer(rest[2]);
  const bool is_limited = limit && limit->clamped() > 0;
  // The package passes the limit minus one to Python, so the bound here is one higher.
  if (is_limited && !limit->is_count("9223372036854775808")) return std::nullopt;
  const uint64_t most = is_limited ? static_cast<uint64_t>(limit->clamped()) : std::numeric_limits<uint64_t>::max();
  std::vector<std::string_view> pieces;
  size_t behind = 0;
  for (size_t at = text.find(mark); at != npos && pieces.size() + 1 < most; at = text.find(mark, behind)) {
    pieces.push_back(text.substr(behind, at - behind));
    behind = at + mark.size();
  }
  pieces.push_back(text.substr(behind));
  const int64_t number = rest.number(1), size = static_cast<int64_t>(pieces.size());
  const int64_t place = number < 0 ? number + size : number;
  return place < 0 || place >= size ? std::string() : std::string(pieces[static_cast<size_t>(place)]);
}

// Returns the value of the function, or nullopt also if the name is unknown.
inline Result call_text_function(std::string_view name, std::string_view text, Rest rest, Work& work) {
  if (name == "lc") return lower_case(text);
  if (name == "uc") return upper_case(text);
  if (name == "lcfirst") return lower_first(text);
  if (name == "ucfirst") return upper_first(text);
  if (name == "urlencode") return url_encode(text);
  if (name == "urldecode") return url_decode(text);
  if (name == "formatnum") return format_number(text, rest);
  if (name == "padleft" || name == "padright") return pad(text, rest, name == "padleft", work);
  if (name == "#len") return std::to_string(count_characters(text));
  if (name == "#pos") return position(text, rest);
  if (name == "#rpos") return last_position(text, rest);
  if (name == "#sub") return substring(text, rest);
  if (name == "#count") return count(text, rest);
  if (name == "#replace") return replace(text, rest, work);
  if (name == "#explode") return explode(text, rest);
  if (name == "int") {
    const auto number = read_integer(text);
    return number ? Result(number->text()) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace bertdata::wiki::wikiextractor
