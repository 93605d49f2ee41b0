// Searches for the next of a few bytes, or for a short mark, 16 bytes at a time with SSE2.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "wiki/characters.h"

namespace bertdata::wiki {

// Returns the index of the first byte at pos or later that is one of the marks, or npos.
template <char... marks>
size_t find_any(std::string_view text, size_t pos) {
#if defined(__SSE2__)
  for (; pos + 16 <= text.size(); pos += 16) {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + pos));
    __m128i hits = _mm_setzero_si128();
    ((hits = _mm_or_si128(hits, _mm_cmpeq_epi8(chunk, _mm_set1_epi8(marks)))), ...);
    if (const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hits)))
      return pos + static_cast<size_t>(__builtin_ctz(mask));
  }
#endif
  for (; pos < text.size(); ++pos)
    if (((text[pos] == marks) || ...)) return pos;
  return npos;
}

// Returns where the mark, of at least two bytes, begins at pos or later, or npos.
inline size_t find_mark(std::string_view text, std::string_view mark, size_t pos) {
  if (pos > text.size() || text.size() - pos < mark.size()) return npos;
  const size_t last = text.size() - mark.size();  // last index where the mark can begin
#if defined(__SSE2__)
  // Compare the first two bytes of the mark at 16 places at once. Two bytes are rare enough that the full comparison
  // is seldom needed.
  const __m128i first = _mm_set1_epi8(mark[0]), second = _mm_set1_epi8(mark[1]);
  const auto hits_at = [&](size_t place) {
    const auto* at = reinterpret_cast<const __m128i*>(text.data() + place);
    const auto* behind = reinterpret_cast<const __m128i*>(text.data() + place + 1);
    return _mm_and_si128(_mm_cmpeq_epi8(_mm_loadu_si128(at), first),
                         _mm_cmpeq_epi8(_mm_loadu_si128(behind), second));
  };
  for (; pos + 17 <= text.size(); pos += 16) {
    // Most texts have no mark, so four blocks are tested together.
    while (pos + 65 <= text.size() &&
           !_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(hits_at(pos), hits_at(pos + 16)),
                                           _mm_or_si128(hits_at(pos + 32), hits_at(pos + 48)))))
      pos += 64;
    if (pos + 17 > text.size()) break;
    const __m128i hits = hits_at(pos);
    for (auto mask = static_cast<unsigned>(_mm_movemask_epi8(hits)); mask; mask &= mask - 1) {
      const size_t found = pos + static_cast<size_t>(__builtin_ctz(mask));
      if (found > last) return npos;
      if (mark.size() == 2 || std::memcmp(text.data() + found, mark.data(), mark.size()) == 0) return found;
    }
  }
#endif
  return text.find(mark, pos);
}

// Finds the next of a few bytes for ever larger positions. It keeps the last result, so all searches together are
// linear.
template <char... marks>
class NextAny {
 public:
  size_t from(std::string_view text, size_t pos) {
    if (!searched_ || (place_ != npos && place_ < pos)) place_ = find_any<marks...>(text, pos);
    searched_ = true;
    return place_;
  }

 private:
  size_t place_ = 0;
  bool searched_ = false;
};

inline bool holds(std::string_view text, std::string_view mark) { return find_mark(text, mark, 0) != npos; }

// Replaces every occurrence of the mark, from left to right. `spare` is a scratch buffer.
inline void replace_all(std::string& text, std::string_view mark, std::string_view with, std::string& spare) {
  size_t at = find_mark(text, mark, 0);
  if (at == npos) return;
  spare.clear();
  size_t behind = 0;
  for (; at != npos; at = find_mark(text, mark, behind)) {
    spare.append(text, behind, at - behind);
    spare.append(with);
    behind = at + mark.size();
  }
  spare.append(text, behind, npos);
  text.swap(spare);
}

}  // namespace bertdata::wiki
