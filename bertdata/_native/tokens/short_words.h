// Cache of ASCII words of at most 16 letters and digits, which make up most of a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bertdata {

// Up to 16 bytes, padded with zeros. Two comparisons of 64-bit numbers compare whole words.
struct ShortWord {
  uint64_t low, high;
  bool operator==(const ShortWord& other) const { return low == other.low && high == other.high; }
};

inline bool is_ascii_word(uint8_t c) {
  return static_cast<uint8_t>((c | 0x20) - 'a') < 26 || static_cast<uint8_t>(c - '0') < 10;
}

#if defined(__SSE2__)
// Loaded from offset 16 - n on, it is a mask of n one-bytes followed by zeros.
inline constexpr int8_t kOnes[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
#endif

// Returns the length (at most 16) of the run of ASCII letters and digits at p, and the run itself in `word`. Reads 16
// bytes, but never beyond `end`.
// lower_case: sets bit 5 of each byte, which makes letters lower-case. Digits have that bit already.
// "Don't" -> length 3, word "don" with lower_case
inline unsigned read_short_word(const uint8_t* p, const uint8_t* end, bool lower_case, ShortWord& word) {
  uint8_t nearer[16] = {};
  if (end - p < 16) p = static_cast<const uint8_t*>(std::memcpy(nearer, p, static_cast<size_t>(end - p)));
#if defined(__SSE2__)
  static const auto in_range = [](__m128i v, char first, char last) {
    return _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8(static_cast<char>(first - 1))),
                         _mm_cmplt_epi8(v, _mm_set1_epi8(static_cast<char>(last + 1))));
  };
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  // All 16 bytes are tested at once. Bit i of `misses` is set if byte i is no letter or digit, so the lowest set bit is
  // the word's end.
  const __m128i folded = _mm_or_si128(raw, _mm_set1_epi8(0x20));
  const __m128i is_word = _mm_or_si128(in_range(folded, 'a', 'z'), in_range(raw, '0', '9'));
  const unsigned misses = ~static_cast<unsigned>(_mm_movemask_epi8(is_word)) | 0x10000u;
  const unsigned length = static_cast<unsigned>(__builtin_ctz(misses));
  // Stay in registers: writing the bytes to memory and reading them back would delay the next word.
  const __m128i within = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOnes + 16 - length));
  const __m128i letters = _mm_and_si128(lower_case ? folded : raw, within);
  word.low = static_cast<uint64_t>(_mm_cvtsi128_si64(letters));
  word.high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(letters, letters)));
#else
  uint8_t bytes[16] = {};
  unsigned length = 0;
  for (; length < 16 && is_ascii_word(p[length]); ++length)
    bytes[length] = lower_case ? static_cast<uint8_t>(p[length] | 0x20) : p[length];
  std::memcpy(&word, bytes, 16);
#endif
  return length;
}

// A short word that was read, with its length and hash. Its cache entry is being prefetched.
struct ReadWord {
  ShortWord word;
  uint32_t length;
  uint32_t hash;
};

// Open-addressing hash table from short words to ids. An entry is 32 bytes, half a cache line. While the table can
// grow it stays less than 40 % full, so that nearly always the first entry looked at is the right one. At its largest
// size it may be 75 % full, then everything is dropped.
class ShortWordCache {
 public:
  struct Entry {
    ShortWord word;
    uint32_t count;  // number of ids; 0 means free
    uint32_t ids[3];  // if there are more than three ids, ids[0] is their index in spilled_
  };
  static constexpr uint32_t kInline = 3;
  static constexpr size_t kMostSpilled = size_t{1} << 20;

  explicit ShortWordCache(size_t max_slots = size_t{1} << 19) : entries_(1 << 13), max_slots_(max_slots) {}

  // Hashes the word and starts to load its entry into the cache, so that a later find() does not wait for memory.
  ReadWord fetch(const ShortWord& word, unsigned length) const {
    const uint32_t hash = hash_of(word);
#if defined(__GNUC__)
    __builtin_prefetch(&entries_[hash & (entries_.size() - 1)]);
#endif
    return {word, length, hash};
  }

  Entry& find(const ShortWord& word, uint32_t hash) {
    size_t slot = hash & (entries_.size() - 1);
    while (entries_[slot].count && !(entries_[slot].word == word)) slot = (slot + 1) & (entries_.size() - 1);
    return entries_[slot];
  }

  Entry& find(const ShortWord& word) { return find(word, hash_of(word)); }

  const uint32_t* ids(const Entry& entry) const {
    return entry.count <= kInline ? entry.ids : spilled_.data() + entry.ids[0];
  }

  // Fills the free entry that find() returned. Returns the word's entry, which has moved if the table has grown.
  Entry& add(Entry& entry, const ShortWord& word, const std::vector<uint32_t>& ids) {
    if (spilled_.size() + ids.size() > kMostSpilled) return add(forget(word), word, ids);
    entry.word = word;
    entry.count = static_cast<uint32_t>(ids.size());
    if (ids.size() <= kInline) {
      std::memcpy(entry.ids, ids.data(), ids.size() * sizeof(uint32_t));
    } else {
      entry.ids[0] = static_cast<uint32_t>(spilled_.size());
      spilled_.insert(spilled_.end(), ids.begin(), ids.end());
    }
    ++used_;
    if (used_ * 5 > entries_.size() * 2 && entries_.size() < max_slots_) {
      grow();
      return find(word);
    }
    return used_ * 4 <= entries_.size() * 3 ? entry : add(forget(word), word, ids);
  }

 private:
  static uint32_t hash_of(const ShortWord& word) {
    uint64_t h = (word.low ^ word.high * 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    return static_cast<uint32_t>(h ^ h >> 32);
  }

  // Empties the table and returns the entry where the word belongs.
  Entry& forget(const ShortWord& word) {
    entries_.assign(entries_.size(), Entry{});
    spilled_.clear();
    used_ = 0;
    return find(word);
  }

  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.count) find(entry.word) = entry;
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> spilled_;
  size_t used_ = 0, max_slots_;
};

}  // namespace bertdata
