// Tracks which ids of a text are used by at least one example. Twin: the set of places in examples/bert/reference.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bertdata {

// One bit for each id of the text. Examples overlap, because each pass cuts the text again, so adding up their lengths
// would count ids twice.
class HeldIds {
 public:
  explicit HeldIds(size_t ids) : ids_(ids), bits_((ids + 63) / 64, 0) {}

  // Marks `length` ids from `start` on, up to 64 at a time.
  void mark(uint64_t start, uint64_t length) {
    const uint64_t end = start + length;
    while (start < end) {
      const uint64_t offset = start & 63, count = end - start < 64 - offset ? end - start : 64 - offset;
      const uint64_t ones = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
      bits_[start >> 6] |= ones << offset;
      start += count;
    }
  }

  // Returns the number of ids that no example uses.
  uint64_t lost() const {
    uint64_t held = 0;
    for (const uint64_t word : bits_) held += static_cast<uint64_t>(__builtin_popcountll(word));
    return ids_ - held;
  }

 private:
  uint64_t ids_;
  std::vector<uint64_t> bits_;
};

}  // namespace bertdata
