// Turns a pre-token into ids by applying BPE merges. Twin of tokens/bpe/tokens.py.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bertdata {

// The merges of a vocabulary. The pair (left, right) -> (rank, new id) is stored in an open-addressing hash table.
class Merges {
 public:
  // Builds the table.
  // units: id of each of the 256 bytes.
  // joins: left id, right id and new id of each merge, in order of rank. If a pair occurs twice, its first rank
  // counts.
  // whole_words: pre-tokens that have an id which no merge makes.
  Merges(const std::vector<uint32_t>& units, const uint32_t* joins, size_t count,
         std::unordered_map<std::string, uint32_t> whole_words)
      : units_(units), whole_words_(std::move(whole_words)) {
    if (units_.size() != 256) throw std::invalid_argument("units: expected the ids of 256 bytes");
    if (count >= kNone / 3) throw std::invalid_argument("merges: too many");
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    slots_.assign(slots, Slot{});
    for (size_t rank = 0; rank < count; ++rank) {
      Slot& slot = find(joins[3 * rank], joins[3 * rank + 1]);
      if (slot.rank == kNone) slot = {joins[3 * rank], joins[3 * rank + 1], static_cast<uint32_t>(rank), joins[3 * rank + 2]};
    }
  }

  // Appends the ids of a pre-token.
  // Pre-token "hug", merges (u, g) and (h, ug): h u g -> h ug -> hug
  void split(std::string_view word, std::vector<uint32_t>& ids) {
    if (!whole_words_.empty()) {
      const auto found = whole_words_.find(std::string(word));
      if (found != whole_words_.end()) return ids.push_back(found->second);
    }
    const size_t first = ids.size();
    for (const char c : word) ids.push_back(units_[static_cast<uint8_t>(c)]);
    if (word.size() <= kShort)
      ids.resize(first + join_short(ids.data() + first, word.size()));
    else
      ids.resize(first + join_long(ids.data() + first, word.size()));
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr size_t kShort = 96;  // bytes; up to this length comparing all pairs is faster than a heap

  struct Slot {
    uint32_t left = 0, right = 0, rank = kNone, joined = 0;
  };

  // Returns the slot of the pair, or the free slot (rank kNone) where it would be stored.
  const Slot& find(uint32_t left, uint32_t right) const {
    uint64_t h = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
    size_t slot = h & (slots_.size() - 1);
    while (slots_[slot].rank != kNone && (slots_[slot].left != left || slots_[slot].right != right))
      slot = (slot + 1) & (slots_.size() - 1);
    return slots_[slot];
  }
  // Returns the same slot, for writing.
  Slot& find(uint32_t left, uint32_t right) {
    return const_cast<Slot&>(static_cast<const Merges*>(this)->find(left, right));
  }

  // Joins pairs in place and returns the number of ids left. Always joins the pair with the lowest rank, the leftmost
  // one if several are equal, until no pair has a merge.
  size_t join_short(uint32_t* ids, size_t count) const {
    uint32_t ranks[kShort];
    // ranks[i] is the rank of the pair (ids[i], ids[i + 1]). A join changes two ranks only: the pair of the new id
    // with its left and with its right neighbour.
    for (size_t i = 0; i + 1 < count; ++i) ranks[i] = find(ids[i], ids[i + 1]).rank;
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (ranks[i] < ranks[best]) best = i;
      if (ranks[best] == kNone) break;
      ids[best] = find(ids[best], ids[best + 1]).joined;
      --count;
      // Close the gap that the right id of the joined pair leaves.
      for (size_t i = best + 1; i < count; ++i) {
        ids[i] = ids[i + 1];
        ranks[i - 1] = ranks[i];
      }
      if (best + 1 < count) ranks[best] = find(ids[best], ids[best + 1]).rank;
      if (best) ranks[best - 1] = find(ids[best - 1], ids[best]).rank;
    }
    return count;
  }

  // Does the same as join_short in O(n log n): a heap of pairs by rank and position, and a linked list of the ids that
  // are left. A pre-token can have millions of bytes, for example a long run of spaces.
  size_t join_long(uint32_t* ids, size_t count) {
    if (count > kNone - 1) throw std::length_error("a word of more than 4294967294 bytes");
    const uint32_t end = static_cast<uint32_t>(count);
    next_.resize(count);
    previous_.resize(count);
    // Items: rank << 32 | position of the left id.
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<uint64_t>> pairs;
    const auto add = [&](uint32_t place) {
      if (next_[place] == end) return;
      const uint32_t rank = find(ids[place], ids[next_[place]]).rank;
      if (rank != kNone) pairs.push(uint64_t{rank} << 32 | place);
    };
    for (uint32_t i = 0; i < end; ++i) next_[i] = i + 1, previous_[i] = i - 1;
    for (uint32_t i = 0; i < end; ++i) add(i);
    while (!pairs.empty()) {
      const uint32_t rank = static_cast<uint32_t>(pairs.top() >> 32), place = static_cast<uint32_t>(pairs.top());
      pairs.pop();
      const uint32_t right = next_[place];
      // A join makes other heap entries invalid. They stay in the heap and are recognised here: the left id was merged
      // into its neighbour, it is the last id, or the pair has another rank now.
      if (right == kNone || right == end) continue;
      const Slot& slot = find(ids[place], ids[right]);
      if (slot.rank != rank) continue;
      ids[place] = slot.joined;
      next_[place] = next_[right];
      next_[right] = kNone;
      if (next_[place] != end) previous_[next_[place]] = place;
      add(place);
      if (place) add(previous_[place]);
    }
    size_t left = 0;
    for (uint32_t i = 0; i < end; i = next_[i]) ids[left++] = ids[i];
    return left;
  }

  std::vector<uint32_t> units_;
  std::unordered_map<std::string, uint32_t> whole_words_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> next_, previous_;
};

}  // namespace bertdata
