// Character properties, lower-casing, canonical decomposition and UTF-8, with the data of Unicode 11.0.
// Twin of unicode/characters.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "unicode/unicode11.h"

namespace bertdata {

// Invalid UTF-8. offset: byte in the text where it was found.
struct InvalidUtf8 : std::runtime_error {
  explicit InvalidUtf8(size_t offset) : std::runtime_error("invalid UTF-8"), offset(offset) {}
  size_t offset;
};

constexpr uint32_t kCodePoints = 0x110000;

enum Class : uint8_t { kOther, kSpace, kControl, kUnassigned, kPunctuation, kMark, kClassMask = 7 };
enum Property : uint8_t { kIdeograph = 8, kCased = 16, kIgnorable = 32, kChanges = 64, kReorders = 128 };

// A byte for each code point: its Class and its Property bits. kChanges: lower-casing or decomposition changes it.
// kReorders: its combining class is not 0.
class Properties {
 public:
  static const Properties& get() {
    static const Properties properties;
    return properties;
  }
  uint8_t operator[](uint32_t cp) const { return bytes_[cp]; }

 private:
  Properties() : bytes_(kCodePoints, kOther) {
    using namespace unicode11;
    set(k_space, kSpace);
    set(k_control, kControl);
    set(k_unassigned, kUnassigned);
    set(k_punctuation, kPunctuation);
    set(k_nonspacing_mark, kMark);
    set(k_cased, kCased);
    set(k_case_ignorable, kIgnorable);
    for (const Mapping& m : k_lower) bytes_[m.from] |= kChanges;
    for (const Mapping& m : k_decomposition) bytes_[m.from] |= kChanges;
    for (const Combining& c : k_combining) bytes_[c.from] |= kReorders;
    const Range hangul[] = {{0xAC00, 0xD7A3}};
    set(hangul, kChanges);
    const Range ideographs[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    set(ideographs, kIdeograph);
    const Range ascii_punctuation[] = {{33, 47}, {58, 64}, {91, 96}, {123, 126}};
    for (const Range& r : ascii_punctuation)
      for (uint32_t cp = r.first; cp <= r.last; ++cp)
        bytes_[cp] = static_cast<uint8_t>((bytes_[cp] & ~kClassMask) | kPunctuation);
  }

  template <size_t N>
  void set(const unicode11::Range (&ranges)[N], uint8_t bits) {
    for (const auto& r : ranges)
      for (uint32_t cp = r.first; cp <= r.last; ++cp) bytes_[cp] |= bits;
  }

  std::vector<uint8_t> bytes_;
};

using Text = std::vector<uint32_t>;

// Returns the mapping of a code point in a sorted table, or null.
template <size_t N>
const unicode11::Mapping* find_mapping(const unicode11::Mapping (&table)[N], uint32_t cp) {
  const auto* found = std::lower_bound(table, table + N, cp,
                                       [](const unicode11::Mapping& m, uint32_t value) { return m.from < value; });
  return found != table + N && found->from == cp ? found : nullptr;
}

inline void append_mapping(const unicode11::Mapping* mapping, uint32_t cp, Text& out) {
  if (!mapping) {
    out.push_back(cp);
    return;
  }
  for (uint32_t to : mapping->to)
    if (to) out.push_back(to);
}

// Returns whether a capital sigma at index i ends a word: a cased character comes before it and none after it, with
// case-ignorable characters skipped.
inline bool is_final_sigma(const Text& text, size_t i, const Properties& of) {
  size_t j = i;
  while (j > 0 && (of[text[j - 1]] & kIgnorable)) --j;
  if (j == 0 || !(of[text[j - 1]] & kCased)) return false;
  for (j = i + 1; j < text.size() && (of[text[j]] & kIgnorable); ++j) {
  }
  return j == text.size() || !(of[text[j]] & kCased);
}

// Lower-cases a token as Python's str.lower(). Without final_sigma every character is mapped by itself.
inline void lower(const Text& text, Text& out, bool final_sigma = true) {
  const Properties& of = Properties::get();
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t cp = text[i];
    if (cp == 0x3A3)
      out.push_back(final_sigma && is_final_sigma(text, i, of) ? 0x3C2 : 0x3C3);
    else if (of[cp] & kChanges)
      append_mapping(find_mapping(unicode11::k_lower, cp), cp, out);
    else
      out.push_back(cp);
  }
}

inline uint8_t combining_class(uint32_t cp, const Properties& of) {
  if (!(of[cp] & kReorders)) return 0;
  const auto& table = unicode11::k_combining;
  return std::lower_bound(std::begin(table), std::end(table), cp,
                          [](const unicode11::Combining& c, uint32_t value) { return c.from < value; })
      ->ccc;
}

inline void decompose_hangul(uint32_t cp, Text& out) {
  const uint32_t index = cp - 0xAC00;
  out.push_back(0x1100 + index / 588);
  out.push_back(0x1161 + index % 588 / 28);
  if (index % 28) out.push_back(0x11A7 + index % 28);
}

// Writes the canonical decomposition (NFD) in canonical order.
inline void decompose(const Text& text, Text& out) {
  const Properties& of = Properties::get();
  out.clear();
  bool reorders = false;
  for (uint32_t cp : text) {
    if (cp >= 0xAC00 && cp <= 0xD7A3)
      decompose_hangul(cp, out);
    else if (of[cp] & kChanges)
      append_mapping(find_mapping(unicode11::k_decomposition, cp), cp, out);
    else
      out.push_back(cp);
    reorders |= (of[out.back()] & kReorders) != 0;
  }
  // Sort each run of combining characters by combining class. Most text has none.
  if (!reorders) return;
  for (size_t start = 0; start < out.size();) {
    size_t stop = start;
    while (stop < out.size() && (of[out[stop]] & kReorders)) ++stop;
    std::stable_sort(out.begin() + static_cast<ptrdiff_t>(start), out.begin() + static_cast<ptrdiff_t>(stop),
                     [&](uint32_t a, uint32_t b) { return combining_class(a, of) < combining_class(b, of); });
    start = std::max(stop, start + 1);
  }
}

inline void append_utf8(uint32_t cp, std::string& out) {
  if (cp < 0x80) {
    out += static_cast<char>(cp);
  } else if (cp < 0x800) {
    out += static_cast<char>(0xC0 | cp >> 6);
    out += static_cast<char>(0x80 | (cp & 63));
  } else if (cp < 0x10000) {
    out += static_cast<char>(0xE0 | cp >> 12);
    out += static_cast<char>(0x80 | (cp >> 6 & 63));
    out += static_cast<char>(0x80 | (cp & 63));
  } else {
    out += static_cast<char>(0xF0 | cp >> 18);
    out += static_cast<char>(0x80 | (cp >> 12 & 63));
    out += static_cast<char>(0x80 | (cp >> 6 & 63));
    out += static_cast<char>(0x80 | (cp & 63));
  }
}

// Decodes a code point of strict UTF-8 at p, where p < end, and moves p past it. Returns kCodePoints and leaves p if
// the bytes are invalid.
inline uint32_t decode_utf8(const uint8_t*& p, const uint8_t* end) {
  const uint32_t lead = *p;
  if (lead < 0x80) return ++p, lead;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || static_cast<size_t>(end - p) < length) return kCodePoints;
  uint32_t cp = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return kCodePoints;
    cp = cp << 6 | (p[i] & 63u);
  }
  const bool overlong = (length == 3 && cp < 0x800) || (length == 4 && cp < 0x10000);
  if (overlong || cp >= kCodePoints || (cp >= 0xD800 && cp < 0xE000)) return kCodePoints;
  p += length;
  return cp;
}

// Throws InvalidUtf8 unless the text is strict UTF-8.
inline void check_utf8(const uint8_t* text, size_t size) {
  const uint8_t *p = text, *const end = text + size;
  while (p < end) {
    uint64_t eight;
    // Eight ASCII bytes at a time.
    if (end - p >= 8 && (std::memcpy(&eight, p, 8), !(eight & 0x8080808080808080ull))) {
      p += 8;
    } else if (decode_utf8(p, end) == kCodePoints) {
      throw InvalidUtf8(static_cast<size_t>(p - text));
    }
  }
}

// Returns what Python's str.isspace() returns. It is the same in every Unicode version since 6.3.
inline bool is_python_space(uint32_t cp) {
  return (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x20) || cp == 0x85 || cp == 0x2028 || cp == 0x2029 ||
         (Properties::get()[cp] & kClassMask) == kSpace;
}

}  // namespace bertdata
