// Philox4x32-10, a counter-based random generator: a key for each shard and a counter for each example. Twin of
// examples/dynamic_masking/counter_stream.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "examples/mt19937.h"

namespace bertdata {

namespace philox {

constexpr size_t kLanes = 8;  // blocks computed at once, so that the compiler can use whole vectors
constexpr size_t kWords = 4 * kLanes;
constexpr int kRounds = 10;

// Computes the outputs for counters block, block + 1, ..., block + 7 of an example: four words each.
// The counter's words are (block, 0, low half of example, high half). Any block can be computed without those before
// it.
BERTDATA_VECTOR_CLONES inline void fill(uint64_t key, uint64_t example, uint32_t block, uint32_t* __restrict out) {
  uint32_t a[kLanes], b[kLanes], c[kLanes], d[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    a[lane] = block + lane;
    b[lane] = 0;
    c[lane] = static_cast<uint32_t>(example);
    d[lane] = static_cast<uint32_t>(example >> 32);
  }
  uint32_t first = static_cast<uint32_t>(key), second = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t low = uint64_t{0xD2511F53u} * a[lane], high = uint64_t{0xCD9E8D57u} * c[lane];
      a[lane] = static_cast<uint32_t>(high >> 32) ^ b[lane] ^ first;
      b[lane] = static_cast<uint32_t>(high);
      c[lane] = static_cast<uint32_t>(low >> 32) ^ d[lane] ^ second;
      d[lane] = static_cast<uint32_t>(low);
    }
    first += 0x9E3779B9u;
    second += 0xBB67AE85u;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out[4 * lane] = a[lane];
    out[4 * lane + 1] = b[lane];
    out[4 * lane + 2] = c[lane];
    out[4 * lane + 3] = d[lane];
  }
}

}  // namespace philox

// The random words of an example, in the order of the counter.
class CounterStream {
 public:
  CounterStream(uint64_t key, uint64_t example) : key_(key), example_(example) {}

  uint32_t word() {
    if (used_ == philox::kWords) {
      philox::fill(key_, example_, block_, words_);
      block_ += philox::kLanes;
      used_ = 0;
    }
    return words_[used_++];
  }

  // Returns a uniform integer in [0, limit), limit >= 1, by Lemire's method (2019).
  uint32_t below(uint32_t limit) {
    uint64_t product = uint64_t{word()} * limit;
    if (static_cast<uint32_t>(product) < limit) {
      // 2^32 mod limit: low halves below it would make some results more likely
      const uint32_t least = (0u - limit) % limit;
      while (static_cast<uint32_t>(product) < least) product = uint64_t{word()} * limit;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t key_, example_;
  uint32_t block_ = 0;
  size_t used_ = philox::kWords;
  uint32_t words_[philox::kWords];
};

}  // namespace bertdata
