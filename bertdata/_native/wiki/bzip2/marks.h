// Finds the magic numbers of bzip2 blocks and stream ends, at any bit of a byte array.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace bertdata::bzip2 {

constexpr uint64_t kBlockMagic = 0x314159265359;
constexpr uint64_t kEndMagic = 0x177245385090;

// A magic number that begins in byte i covers the bytes i + 1 to i + 5 completely. One of its byte pairs begins at a
// multiple of four, so only those pairs are looked up in a table of the pairs that occur in magic numbers at any bit
// offset.
class MarkFinder {
 public:
  // Calls found(bit, is_end) for each magic number that begins in the bytes start to stop, in order.
  template <class Found>
  static void find(const uint8_t* data, size_t size, size_t start, size_t stop, Found found) {
    static const MarkFinder finder;
    for (size_t pair = start / 4 * 4 + 4; pair + 1 < size && pair < stop + 4; pair += 4) {
      if (!finder.pairs_[data[pair] << 8 | data[pair + 1]]) continue;
      for (size_t i = pair - 4; i < pair; ++i)
        if (i >= start && i < stop && i + 5 < size) check(data, size, i, found);
    }
  }

 private:
  MarkFinder() {
    for (const uint64_t magic : {kBlockMagic, kEndMagic})
      for (unsigned k = 0; k < 8; ++k)
        for (unsigned byte = 0; byte < 4; ++byte) pairs_.set(magic >> k >> (24 - 8 * byte) & 0xFFFF);
  }

  // Looks for a magic number at each bit of byte i. Zeros follow the end of the data.
  template <class Found>
  static void check(const uint8_t* data, size_t size, size_t i, Found& found) {
    uint64_t bits = 0;
    for (size_t j = i; j < i + 7; ++j) bits = bits << 8 | (j < size ? data[j] : 0);
    for (unsigned k = 0; k < 8; ++k) {
      const uint64_t number = bits >> (8 - k) & 0xFFFFFFFFFFFF;
      if (number == kBlockMagic || number == kEndMagic) found(uint64_t{8} * i + k, number == kEndMagic);
    }
  }

  std::bitset<65536> pairs_;
};

}  // namespace bertdata::bzip2
