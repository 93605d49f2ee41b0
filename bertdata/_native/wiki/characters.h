// Characters of wiki mark-up in UTF-8: word characters, white space, and letters compared without regard to case.
//
// Texts are valid UTF-8 except for lone surrogates, which character references can produce. A surrogate is stored as
// three bytes. Every function checks bounds and accepts any bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/unicode11.h"
#include "unicode/unicode14.h"

namespace bertdata::wiki {

constexpr uint32_t kNoCharacter = 0x110000;
constexpr size_t npos = std::string_view::npos;

struct Character {
  uint32_t cp;    // kNoCharacter if no character begins at this byte
  size_t length;  // bytes; 1 for kNoCharacter
};

inline bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Returns the character at pos, which must be inside the text.
inline Character decode_at(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[pos + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (!length || lead > 0xF4 || text.size() - pos < length) return {kNoCharacter, 1};
  uint32_t cp = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[pos + i])) return {kNoCharacter, 1};
    cp = cp << 6 | (byte(i) & 63);
  }
  return cp < kNoCharacter ? Character{cp, length} : Character{kNoCharacter, 1};
}

// Returns the character that ends at `end`, which must not be 0.
inline Character decode_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && is_continuation(text[begin])) --begin;
  const Character found = decode_at(text.substr(0, end), begin);
  return begin + found.length == end ? found : Character{kNoCharacter, 1};
}

// Appends a code point, which may be a surrogate.
inline void append_character(uint32_t cp, std::string& out) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (cp < 0x80) {
    put(cp);
    return;
  }
  if (cp < 0x800) {
    put(0xC0 | cp >> 6);
  } else {
    if (cp < 0x10000) {
      put(0xE0 | cp >> 12);
    } else {
      put(0xF0 | cp >> 18);
      put(0x80 | (cp >> 12 & 63));
    }
    put(0x80 | (cp >> 6 & 63));
  }
  put(0x80 | (cp & 63));
}

// Returns the number of characters in the text.
inline size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (char byte : text) count += !is_continuation(byte);
  return count;
}

// Returns whether the text contains a surrogate, which a UTF-8 file cannot contain.
inline bool has_surrogate(std::string_view text) {
  for (size_t at = text.find('\xED'); at != npos; at = text.find('\xED', at + 1))
    if (at + 1 < text.size() && static_cast<uint8_t>(text[at + 1]) >= 0xA0) return true;
  return false;
}

// Word characters (letters, numbers and "_") and decimal digits of a version of Unicode.
class Words {
 public:
  static const Words& unicode11() {
    static const Words words = [] {
      Words made;
      made.add(unicode11::k_letter_like);
      made.add(unicode11::k_decimal);
      made.add_digits(unicode11::k_decimal);
      return made;
    }();
    return words;
  }
  static const Words& unicode14() {
    static const Words words = [] {
      Words made;
      made.add(unicode14::k_word);
      made.add_digits(unicode14::k_decimal);
      return made;
    }();
    return words;
  }

  bool has(uint32_t cp) const { return cp < kNoCharacter && (bits_[cp >> 6] >> (cp & 63) & 1); }

  // Returns the value of a decimal digit of any script, or -1 for other characters.
  int digit(uint32_t cp) const {
    if (cp < 0x80) return cp >= '0' && cp <= '9' ? static_cast<int>(cp - '0') : -1;
    for (const auto& [first, last] : digits_)
      if (cp >= first && cp <= last) return static_cast<int>((cp - first) % 10);
    return -1;
  }

  // Returns the length in bytes of the word character at pos, or 0 if there is none.
  size_t length_at(std::string_view text, size_t pos) const {
    if (pos >= text.size()) return 0;
    const auto byte = static_cast<uint8_t>(text[pos]);
    if (byte < 0x80) return has(byte);
    const Character found = decode_at(text, pos);
    return has(found.cp) ? found.length : 0;
  }

  // Returns the end of the run of word characters that begins at pos.
  size_t skip(std::string_view text, size_t pos) const {
    while (const size_t length = length_at(text, pos)) pos += length;
    return pos;
  }

  // Returns whether a word can end at pos: the text ends there, or the next character is not a word character.
  bool is_edge(std::string_view text, size_t pos) const { return length_at(text, pos) == 0; }

 private:
  Words() : bits_(kNoCharacter / 64) {}

  template <class Range, size_t N>
  void add(const Range (&ranges)[N]) {
    for (const Range& range : ranges)
      for (uint32_t cp = range.first; cp <= range.last; ++cp) bits_[cp >> 6] |= uint64_t{1} << (cp & 63);
  }
  template <class Range, size_t N>
  void add_digits(const Range (&ranges)[N]) {
    for (const Range& range : ranges) digits_.emplace_back(range.first, range.last);
  }

  std::vector<uint64_t> bits_;
  // Ranges of digits. Each range starts with a zero and has a multiple of ten digits.
  std::vector<std::pair<uint32_t, uint32_t>> digits_;
};

inline bool is_space(uint32_t cp) {
  if (cp < 0x80) return (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x20);
  return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
         cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

// Returns the length in bytes of the white-space character at pos, or 0 if there is none.
inline size_t space_at(std::string_view text, size_t pos) {
  if (pos >= text.size()) return 0;
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return is_space(byte);
  const Character found = decode_at(text, pos);
  return is_space(found.cp) ? found.length : 0;
}

inline size_t skip_spaces(std::string_view text, size_t pos) {
  while (const size_t length = space_at(text, pos)) pos += length;
  return pos;
}

inline std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const Character last = decode_before(text, text.size());
    if (!is_space(last.cp)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

inline std::string_view strip(std::string_view text) {
  text.remove_prefix(skip_spaces(text, 0));
  return strip_right(text);
}

inline bool starts_with(std::string_view text, size_t pos, std::string_view mark) {
  return pos <= text.size() && text.size() - pos >= mark.size() &&
         std::memcmp(text.data() + pos, mark.data(), mark.size()) == 0;
}

inline char lower_ascii(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 32) : byte; }

// Returns the end of `name` at pos, compared without regard to case, or npos if the text there is different.
// name: lower-case ASCII. As in Python's re, i also matches U+0130 and U+0131, s U+017F, and k U+212A.
inline size_t match_name(std::string_view text, size_t pos, std::string_view name) {
  for (char letter : name) {
    if (pos >= text.size()) return npos;
    if (lower_ascii(text[pos]) == letter) {
      ++pos;
    } else if (letter == 'i' && (starts_with(text, pos, "\xC4\xB0") || starts_with(text, pos, "\xC4\xB1"))) {
      pos += 2;
    } else if (letter == 's' && starts_with(text, pos, "\xC5\xBF")) {
      pos += 2;
    } else if (letter == 'k' && starts_with(text, pos, "\xE2\x84\xAA")) {
      pos += 3;
    } else {
      return npos;
    }
  }
  return pos;
}

}  // namespace bertdata::wiki
