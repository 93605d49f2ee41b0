// Text that a tokeniser leaves to another program: the code points and strings that the other program treats
// differently. See tokens/wordpiece_json.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "unicode/unicode.h"

namespace bertdata {
// Finds left-out code points and strings. `ranges` holds the first and last code point of each range.

class LeftOut {
 public:
  LeftOut() = default;
  LeftOut(const std::vector<std::pair<uint32_t, uint32_t>>& ranges, const std::vector<std::string>& strings)
      : strings_(strings) {
    for (const auto& range : ranges)
      for (uint32_t cp = range.first; cp <= range.second && cp < kCodePoints; ++cp) add(points_, cp);
    for (const std::string& string : strings) {
      if (firsts_.find(string[0]) == std::string::npos) firsts_ += string[0];
      const uint8_t *p = reinterpret_cast<const uint8_t*>(string.data()), *const end = p + string.size();
      // Remember which code points occur in the strings: near them the caller cannot rely on its rules.
      while (p < end) {
        const uint32_t cp = decode_utf8(p, end);
        if (cp == kCodePoints) throw InvalidUtf8(static_cast<size_t>(p + string.size() - end));
        add(string_points_, cp);
      }
    }
  }

  bool holds(uint32_t cp) const { return !points_.empty() && points_[cp]; }
  // Returns whether one of the strings contains the code point.
  bool has_string_with(uint32_t cp) const { return !string_points_.empty() && string_points_[cp]; }

  // Returns the byte offsets in the text where one of the strings begins, ascending.
  std::vector<size_t> find_strings(const uint8_t* text, size_t size) const {
    std::vector<size_t> places;
    // memchr for each first byte is much faster than comparing the strings at every byte.
    for (const char first : firsts_) {
      const uint8_t *p = text, *const end = text + size;
      while (p < end && (p = static_cast<const uint8_t*>(std::memchr(p, first, static_cast<size_t>(end - p))))) {
        if (string_begins(p, end)) places.push_back(static_cast<size_t>(p - text));
        ++p;
      }
    }
    std::sort(places.begin(), places.end());
    return places;
  }

 private:
  bool string_begins(const uint8_t* p, const uint8_t* end) const {
    for (const std::string& string : strings_)
      if (static_cast<size_t>(end - p) >= string.size() && !std::memcmp(p, string.data(), string.size())) return true;
    return false;
  }

  static void add(std::vector<bool>& points, uint32_t cp) {
    if (points.empty()) points.resize(kCodePoints);
    points[cp] = true;
  }

  std::vector<std::string> strings_;  // no string is empty
  std::string firsts_;  // distinct first bytes of the strings
  std::vector<bool> points_, string_points_;  // by code point; empty if there is none
};

}  // namespace bertdata
