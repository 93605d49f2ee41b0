// Finds the first word n-gram of a text that also occurs in any text of a set. Twin of text/selection/ngrams.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "text/folded_words.h"

namespace bertdata {

// Hash table from n-grams to their offsets in the words of all added texts. If a hash matches, the words themselves
// are compared, so two different n-grams are never confused.
class NgramSet {
 public:
  // An n-gram that a text shares with the set.
  struct Shared {
    size_t start, stop;  // range in the bytes of the searched words
    uint32_t source;
  };

  explicit NgramSet(size_t words) : words_(words), entries_(kLeast), filter_(kLeast / 8) {
    if (words < 1) throw std::invalid_argument("words: expected 1 or more");
    for (size_t i = 0; i < words; ++i) power_ *= kBase;
  }

  size_t size() const { return count_; }

  // Adds the n-grams of a text. Sources must be added in ascending order of their numbers.
  void add(const FoldedWords& text, uint32_t source) {
    if (text.count() < words_) return;
    if (!sources_.empty() && source < sources_.back().source) throw std::invalid_argument("sources do not ascend");
    const size_t begin = bytes_.size();
    if (sources_.empty() || sources_.back().source != source) sources_.push_back({begin, source});
    std::memcpy(bytes_.room(text.bytes.size()), text.bytes.data(), text.bytes.size());
    bytes_.added(text.bytes.size());
    roll(text, [&](size_t word, uint64_t hash) {
      const size_t start = text.words[word].start, stop = text.words[word + words_].start;
      if (find_entry(hash, text.bytes.data() + start, stop - start)) return false;
      if (2 * (count_ + 1) > entries_.size()) grow();
      insert({hash, begin + start});
      ++count_;
      return false;
    });
  }

  // Finds the first n-gram of the text that is in the set. Returns false if there is none.
  bool find(const FoldedWords& text, Shared& shared) const {
    if (text.count() < words_ || !count_) return false;
    return roll(text, [&](size_t word, uint64_t hash) {
      if (!is_in_filter(hash)) return false;
      const size_t start = text.words[word].start, stop = text.words[word + words_].start;
      const Entry* entry = find_entry(hash, text.bytes.data() + start, stop - start);
      if (!entry) return false;
      shared = {start, stop, source_of(entry->place)};
      return true;
    });
  }

 private:
  struct Entry {
    uint64_t hash = 0, place = kFree;
  };
  struct SourceStart {
    uint64_t place;
    uint32_t source;
  };

  static constexpr uint64_t kFree = ~uint64_t{0}, kBase = 0x9E3779B97F4A7C15ull;
  static constexpr size_t kLeast = 1024;

  // Calls use(index of the first word, hash) for each n-gram until it returns true. Returns whether it did.
  // The hash is rolled over the words: the new word is added, and the word that leaves the window is subtracted.
  template <class Use>
  bool roll(const FoldedWords& text, Use use) const {
    uint64_t hash = 0;
    for (size_t i = 0; i < text.count(); ++i) {
      hash = hash * kBase + text.words[i].hash;
      if (i >= words_) hash -= text.words[i - words_].hash * power_;
      if (i + 1 >= words_ && use(i + 1 - words_, mixed(hash))) return true;
    }
    return false;
  }

  static uint64_t mixed(uint64_t hash) {
    hash = (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ull;
    return hash ^ hash >> 32;
  }

  const Entry* find_entry(uint64_t hash, const uint8_t* ngram, size_t size) const {
    const size_t mask = entries_.size() - 1;
    for (size_t i = hash & mask; entries_[i].place != kFree; i = (i + 1) & mask) {
      const Entry& entry = entries_[i];
      if (entry.hash == hash && entry.place + size <= bytes_.size() &&
          !std::memcmp(bytes_.data() + entry.place, ngram, size))
        return &entry;
    }
    return nullptr;
  }

  void insert(const Entry& entry) {
    const size_t mask = entries_.size() - 1;
    size_t i = entry.hash & mask;
    while (entries_[i].place != kFree) i = (i + 1) & mask;
    entries_[i] = entry;
    filter_[filter_word(entry.hash)] |= filter_bit(entry.hash);
  }

  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    filter_.assign(entries_.size() / 8, 0);
    for (const Entry& entry : old)
      if (entry.place != kFree) insert(entry);
  }

  // A filter of 16 bits or more per n-gram, with a bit set for each hash: most n-grams that are not in the set are
  // rejected by a look at a small table.
  size_t filter_word(uint64_t hash) const { return hash >> 38 & (filter_.size() - 1); }
  static uint64_t filter_bit(uint64_t hash) { return uint64_t{1} << (hash >> 32 & 63); }
  bool is_in_filter(uint64_t hash) const { return filter_[filter_word(hash)] & filter_bit(hash); }

  uint32_t source_of(uint64_t place) const {
    const auto after = std::upper_bound(sources_.begin(), sources_.end(), place,
                                        [](uint64_t value, const SourceStart& one) { return value < one.place; });
    return std::prev(after)->source;
  }

  size_t words_, count_ = 0;
  uint64_t power_ = 1;
  Column<uint8_t> bytes_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> filter_;
  std::vector<SourceStart> sources_;
};

}  // namespace bertdata
