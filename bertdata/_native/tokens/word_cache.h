// Cache of the ids of words, so that each word is cleaned and split only once.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace bertdata {

// Open-addressing hash table from byte strings to ids, of limited size. Everything is dropped when it is full.
class WordCache {
 public:
  // The ids of a word. Valid until the next add.
  struct Ids {
    const uint32_t* data;
    uint32_t count;
  };

  explicit WordCache(size_t max_words = size_t{1} << 18) : slots_(1 << 12), max_words_(max_words) {}

  // The slot that holds the word, or the free slot where it belongs. Valid until the next add.
  struct Place {
    uint64_t hash;
    size_t slot;
    bool found;
  };

  Place find(std::string_view word) const {
    const uint64_t hash = hash_of(word);
    size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot].used; slot = (slot + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[slot];
      if (s.hash == hash && s.length == word.size() && !std::memcmp(&bytes_[s.bytes], word.data(), s.length))
        return {hash, slot, true};
    }
    return {hash, slot, false};
  }

  Ids ids(const Place& place) const {
    const Slot& s = slots_[place.slot];
    return {ids_.data() + s.ids, s.count};
  }

  void add(const Place& place, std::string_view word, const std::vector<uint32_t>& ids) {
    const size_t bytes = bytes_.size() + word.size() + sizeof(uint32_t) * (ids_.size() + ids.size());
    if (words_ == max_words_ || bytes > kMostBytes) return clear();
    slots_[place.slot] = {place.hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(word.size()),
                          static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size()), true};
    bytes_.insert(bytes_.end(), word.begin(), word.end());
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    // At most half full, so that a search ends after few steps.
    if (++words_ * 2 > slots_.size()) grow();
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 23;  // bytes of the words and their ids together

  struct Slot {
    uint64_t hash;
    uint32_t bytes, length, ids, count;
    bool used;
  };

  static uint64_t hash_of(std::string_view word) {
    uint64_t hash = word.size() * 0x9E3779B97F4A7C15ull;
    const char* p = word.data();
    size_t left = word.size();
    for (; left >= 8; p += 8, left -= 8) hash = mix(hash, p, 8);
    return left ? mix(hash, p, left) : hash;
  }
  static uint64_t mix(uint64_t hash, const char* p, size_t count) {
    uint64_t piece = 0;
    std::memcpy(&piece, p, count);
    hash = (hash ^ piece) * 0xD6E8FEB86659FD93ull;
    return hash ^ hash >> 32;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old) {
      if (!s.used) continue;
      size_t slot = s.hash & (slots_.size() - 1);
      while (slots_[slot].used) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = s;
    }
  }

  void clear() {
    slots_.assign(slots_.size(), Slot{});
    bytes_.clear();
    ids_.clear();
    words_ = 0;
  }

  std::vector<Slot> slots_;
  std::vector<char> bytes_;
  std::vector<uint32_t> ids_;
  size_t words_ = 0, max_words_;
};

}  // namespace bertdata
