// Characters that the variants of Punkt treat differently. Twin of text/punkt/patterns.py. All text is valid UTF-8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "unicode/unicode.h"

namespace bertdata {

// Releases of NLTK that the variants imitate.
enum class PunktVariant { k3_4_5, k3_10_0, k3_10_4 };

// Classes of bytes. kMaybeSpace marks the lead bytes of white space beyond ASCII.
enum ByteKind : uint16_t {
  kAsciiSpace = 1,     // \s in the variant's regular expressions
  kPlainSpace = 2,     // string.whitespace
  kMaybeSpace = 4,
  kEndMark = 8,        // . ? !
  kBreaksWord = 16,    // ends the word before it and is a word by itself
  kNeverFirst = 32,    // cannot be the first character of a word of several characters
  kClosing = 64,       // belongs to the sentence before it
  kCheckEnd = 128,     // a word may end before it
  kStripped = 256,     // white space for str.strip()
};

struct ByteKinds {
  uint16_t of[256] = {};

  constexpr explicit ByteKinds(const char* more_spaces) {
    set("\t\n\v\f\r ", kAsciiSpace | kPlainSpace | kStripped);
    set("\x1c\x1d\x1e\x1f", kStripped);
    set(more_spaces, kAsciiSpace);
    set("\xc2\xe1\xe2\xe3", kMaybeSpace);
    set(".?!", kEndMark);
    set("?!'\":;*@()[]{}", kBreaksWord);
    set("\"`:;,&#*@()[]{}-", kNeverFirst);
    set("\"')]}", kClosing);
    for (auto& kind : of)
      if (kind & (kAsciiSpace | kMaybeSpace | kBreaksWord)) kind |= kCheckEnd;
    set(".-,", kCheckEnd);
  }
  constexpr void set(const char* bytes, uint16_t kind) {
    for (; *bytes; ++bytes) of[static_cast<uint8_t>(*bytes)] |= kind;
  }
};
inline constexpr ByteKinds kByteKindsOfRe{"\x1c\x1d\x1e\x1f"};
inline constexpr ByteKinds kByteKindsOfRegex{""};

template <size_t N>
bool among(const unicode11::Range (&ranges)[N], uint32_t cp) {
  const auto* found = std::upper_bound(ranges, ranges + N, cp,
                                       [](uint32_t value, const unicode11::Range& r) { return value < r.first; });
  return found != ranges && cp <= found[-1].last;
}

// Classifies characters as a variant does. The length functions return bytes, or 0 if the character is not in the
// class.
class PunktCharacters {
 public:
  explicit PunktCharacters(PunktVariant variant)
      : variant_(variant), is_regex_(variant == PunktVariant::k3_10_4),
        kinds_(is_regex_ ? kByteKindsOfRegex : kByteKindsOfRe) {}

  // Returns whether a candidate that is its word's first character counts even if another candidate follows in that
  // word.
  bool counts_first_mark() const { return variant_ != PunktVariant::k3_4_5; }

  bool is_kind(uint8_t byte, uint16_t kind) const { return kinds_.of[byte] & kind; }

  // Returns the length of the white-space character at p (p < end), or 0.
  size_t space_length(const uint8_t* p, const uint8_t* end) const { return space_length(p, end, kAsciiSpace); }
  // Does the same for the white space of str.strip(), which includes more characters.
  size_t stripped_length(const uint8_t* p, const uint8_t* end) const { return space_length(p, end, kStripped); }

  size_t breaks_word_length(const uint8_t* p, const uint8_t* end) const {
    return is_kind(*p, kBreaksWord) ? 1 : is_regex_ ? quote_length(p, end) : 0;
  }
  size_t closing_length(const uint8_t* p, const uint8_t* end) const {
    return is_kind(*p, kClosing) ? 1 : is_regex_ ? quote_length(p, end) : 0;
  }
  // Returns whether the character separates a candidate's word from the candidate before it.
  bool is_separator(const uint8_t* p, const uint8_t* end) const {
    return variant_ == PunktVariant::k3_4_5 ? space_length(p, end) > 0 : is_kind(*p, kPlainSpace);
  }
  bool is_letter(uint32_t cp) const {
    return is_regex_ ? among(unicode11::k_letter_or_mark, cp) : among(unicode11::k_letter_like, cp);
  }

  const uint8_t* skip_spaces(const uint8_t* p, const uint8_t* end) const {
    while (p < end)
      if (const size_t length = space_length(p, end)) p += length;
      else break;
    return p;
  }
  const uint8_t* find_space(const uint8_t* p, const uint8_t* end) const {
    while (p < end && !space_length(p, end)) ++p;
    return p;
  }
  // Skips white space as str.lstrip() does.
  const uint8_t* without_leading_space(const uint8_t* p, const uint8_t* end) const {
    while (p < end)
      if (const size_t length = stripped_length(p, end)) p += length;
      else break;
    return p;
  }

 private:
  size_t space_length(const uint8_t* p, const uint8_t* end, uint16_t kind) const {
    if (is_kind(*p, kind)) return 1;
    if (!is_kind(*p, kMaybeSpace)) return 0;
    const uint8_t* next = p;
    return is_python_space(decode_utf8(next, end)) ? static_cast<size_t>(next - p) : 0;
  }

  // Returns the length of a curly quote or guillemet at p, or 0.
  static size_t quote_length(const uint8_t* p, const uint8_t* end) {
    if (*p == 0xC2) return end - p > 1 && (p[1] == 0xAB || p[1] == 0xBB) ? 2 : 0;
    if (*p != 0xE2 || end - p < 3 || p[1] != 0x80) return 0;
    return p[2] == 0x98 || p[2] == 0x99 || p[2] == 0x9C || p[2] == 0x9D ? 3 : 0;
  }

  PunktVariant variant_;
  bool is_regex_;
  const ByteKinds& kinds_;
};

}  // namespace bertdata
