// Punkt's tables in one hash table: a single look-up gives all that is known of a word type. Twin of
// text/punkt/tables.py.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bertdata {

// Flags of a word type: the contexts in which the training text has it (values of ortho_context.tab), and its roles.
enum PunktFlag : uint16_t {
  kBeginsUpper = 2,
  kMiddleUpper = 4,
  kUnsureUpper = 8,
  kBeginsLower = 16,
  kMiddleLower = 32,
  kUnsureLower = 64,
  kUpperContext = kBeginsUpper | kMiddleUpper | kUnsureUpper,
  kLowerContext = kBeginsLower | kMiddleLower | kUnsureLower,
  kAbbreviation = 128,
  kSentenceStarter = 256,
  kOpensCollocation = 512,
  kCollocation = 1024,
};

// Open-addressing hash table from word types to their flags.
class PunktTables {
 public:
  using Words = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  using Contexts = std::vector<std::pair<std::string, uint16_t>>;

  PunktTables(const Words& abbreviations, const Pairs& collocations, const Words& sentence_starters,
              const Contexts& contexts)
      : slots_(1024) {
    for (const auto& word : abbreviations) add(word, kAbbreviation);
    for (const auto& word : sentence_starters) add(word, kSentenceStarter);
    for (const auto& [word, flags] : contexts) {
      if (flags & ~(kUpperContext | kLowerContext)) throw std::invalid_argument("contexts: unknown flag of " + word);
      add(word, flags);
    }
    for (const auto& [first, second] : collocations) {
      add(first, kOpensCollocation);
      add(pair_key(first, second), kCollocation);
    }
  }

  // Returns all flags of a word type, 0 if it is unknown.
  uint16_t find(std::string_view type) const { return slots_[slot_of(type, hash_of(type))].flags; }

  bool is_collocation(std::string_view first, std::string_view second) const {
    return find(pair_key(first, second)) & kCollocation;
  }

 private:
  struct Slot {
    uint32_t hash = 0, first = 0;
    uint32_t length = 0;
    uint16_t flags = 0;  // 0: free slot
  };

  // Words contain no line feed, so the key of a pair is never a word.
  static std::string pair_key(std::string_view first, std::string_view second) {
    return std::string(first).append(1, '\n').append(second);
  }

  void add(std::string_view type, uint16_t flags) {
    if (!flags) return;
    const uint32_t hash = hash_of(type);
    Slot& slot = slots_[slot_of(type, hash)];
    if (slot.flags) {
      slot.flags |= flags;
      return;
    }
    slot = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(type.size()), flags};
    bytes_.append(type);
    if (++types_ * 2 > slots_.size()) grow();
  }

  // Returns the slot that holds the type, or the free slot where it belongs.
  size_t slot_of(std::string_view type, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& s = slots_[i];
      if (!s.flags) return i;
      if (s.hash == hash && s.length == type.size() && !std::memcmp(&bytes_[s.first], type.data(), s.length)) return i;
    }
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& s : old) {
      if (!s.flags) continue;
      size_t i = s.hash & mask;
      while (slots_[i].flags) i = (i + 1) & mask;
      slots_[i] = s;
    }
  }

  static uint32_t hash_of(std::string_view type) {
    uint64_t hash = type.size() * 0x9E3779B97F4A7C15ull;
    const char* p = type.data();
    size_t left = type.size();
    for (; left >= 8; p += 8, left -= 8) hash = mix(hash, p, 8);
    return static_cast<uint32_t>(left ? mix(hash, p, left) : hash);
  }
  static uint64_t mix(uint64_t hash, const char* p, size_t count) {
    uint64_t piece = 0;
    std::memcpy(&piece, p, count);
    hash = (hash ^ piece) * 0xD6E8FEB86659FD93ull;
    return hash ^ hash >> 32;
  }

  std::vector<Slot> slots_;
  std::string bytes_;
  size_t types_ = 0;
};

}  // namespace bertdata
