// Ids of pre-tokens. Each pre-token is merged once and then kept in a cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "tokens/bpe_merges.h"
#include "tokens/short_words.h"
#include "tokens/word_cache.h"

namespace bertdata {

// A text of at most 15 bytes, padded with zeros. The last byte is the length, because the text itself may end in
// zeros.
using ShortText = ShortWord;
constexpr unsigned kLongestShortText = 15;

// Returns the first `length` bytes (at most 15) at p as a ShortText. 16 bytes must be readable at p.
inline ShortText short_text(const uint8_t* p, unsigned length) {
  ShortText text;
  std::memcpy(&text, p, 16);
  const unsigned in_low = length < 8 ? length : 8, in_high = length - in_low;
  if (in_low < 8) text.low &= (uint64_t{1} << 8 * in_low) - 1;
  text.high &= (uint64_t{1} << 8 * in_high) - 1;
  text.high |= uint64_t{length} << 56;
  return text;
}

// Returns the length of the run of ASCII letters at p, including a space before them, and the text in `text`. 16 bytes
// must be readable at p. Returns 0 if there are no letters, or more than 15 bytes.
// " word," -> 5
inline unsigned read_letters(const uint8_t* p, ShortText& text) {
  const unsigned blank = *p == ' ';
#if defined(__SSE2__)
  const __m128i folded = _mm_or_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_set1_epi8(0x20));
  const __m128i letters = _mm_and_si128(_mm_cmpgt_epi8(folded, _mm_set1_epi8('a' - 1)),
                                        _mm_cmplt_epi8(folded, _mm_set1_epi8('z' + 1)));
  const unsigned misses = ~(static_cast<unsigned>(_mm_movemask_epi8(letters)) | blank);
  const unsigned length = static_cast<unsigned>(__builtin_ctz(misses | 0x10000u));
#else
  unsigned length = blank;
  while (length < 16 && static_cast<uint8_t>((p[length] | 0x20) - 'a') < 26) ++length;
#endif
  if (length == blank || length > kLongestShortText) return 0;
  text = short_text(p, length);
  return length;
}

// Turns pre-tokens into ids, with one cache for short and one for longer pre-tokens.
class BpeWords {
 public:
  // The ids of a pre-token. Three ids can always be read, even if count is smaller.
  struct Ids {
    const uint32_t* data;
    uint32_t count;
  };

  explicit BpeWords(Merges merges) : merges_(std::move(merges)) {}

  Ids find(const ShortText& word) {
    ShortWordCache::Entry* entry = &short_words_.find(word);
    if (!entry->count) {
      char bytes[16];
      std::memcpy(bytes, &word, 16);
      ids_.clear();
      merges_.split(std::string_view(bytes, static_cast<uint8_t>(bytes[15])), ids_);
      entry = &short_words_.add(*entry, word, ids_);
    }
    return {short_words_.ids(*entry), entry->count};
  }

  // Returns the ids of the pre-token from p to end. 16 bytes must be readable at p.
  Ids find(const uint8_t* p, const uint8_t* end) {
    const size_t size = static_cast<size_t>(end - p);
    if (size <= kLongestShortText) return find(short_text(p, static_cast<unsigned>(size)));
    const std::string_view word(reinterpret_cast<const char*>(p), size);
    ids_.clear();
    if (size > kLongestCached) {
      merges_.split(word, ids_);
    } else if (const WordCache::Place place = words_.find(word); place.found) {
      const WordCache::Ids found = words_.ids(place);
      ids_.assign(found.data, found.data + found.count);
    } else {
      merges_.split(word, ids_);
      words_.add(place, word, ids_);
    }
    const uint32_t count = static_cast<uint32_t>(ids_.size());
    ids_.resize(ids_.size() + 3);
    return {ids_.data(), count};
  }

 private:
  static constexpr size_t kLongestCached = 256;

  Merges merges_;
  ShortWordCache short_words_;
  WordCache words_;
  std::vector<uint32_t> ids_;
};

}  // namespace bertdata
