// The two random streams that spans are drawn from. Twin of examples/span/streams.py and examples/random_stream.py.
#pragma once

#include <cstdint>

#include "examples/counter_stream.h"
#include "examples/mt19937.h"

namespace bertdata {

// Stream of a single block: Philox, keyed by the pass, with the block's number as the counter.
class BlockStream {
 public:
  BlockStream(uint64_t key, uint64_t block) : words_(key, block) {}

  double random() { return words_.word() * (1.0 / 4294967296.0); }
  uint32_t below(uint32_t limit) { return words_.below(limit); }

 private:
  CounterStream words_;
};

// Draws as numpy.random does after numpy.random.seed(seed).
class NumpyStream {
 public:
  explicit NumpyStream(uint32_t seed) : words_(RandomStream::of_number(seed)) {}

  double random() { return words_.random(); }

  // Returns a uniform integer in [0, limit): the low bits of an output, drawn again until they are below limit. For a
  // limit of 1 it returns 0 without drawing.
  uint32_t below(uint32_t limit) {
    if (limit == 1) return 0;
    const uint32_t mask = 0xFFFFFFFFu >> (32u - bit_length(limit - 1));
    uint32_t draw;
    do draw = words_.next() & mask;
    while (draw >= limit);
    return draw;
  }

 private:
  RandomStream words_;
};

}  // namespace bertdata
