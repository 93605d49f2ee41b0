// Lengths of the n-grams of words that are masked. Twin of NgramLengths in examples/sop/ngrams.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/mt19937.h"

namespace bertdata {

// Settings of n-gram masking.
struct NgramRules {
  std::vector<double> limits;  // cumulative distribution of the length, the last 1; empty: words are masked singly
  uint32_t seed = 0;           // seed of the stream of lengths, as for numpy.random.seed
  bool permutes = false;       // also shuffle the ids of as many other positions
};

// Returns the length in words for a draw in [0, 1): the 1-based index of the first limit above it.
// Example: limits [0.5, 0.8, 1], draw 0.6 -> 2 words.
inline uint32_t ngram_length(const std::vector<double>& limits, double at) {
  uint32_t words = 1;
  while (limits[words - 1] <= at) ++words;
  return words;
}

// Throws std::invalid_argument unless the limits are empty, or ascend from above 0 and end with 1.
inline void check_limits(const std::vector<double>& limits) {
  if (limits.empty()) return;
  if (!std::is_sorted(limits.begin(), limits.end()) || !(limits.front() > 0) || !(limits.back() == 1))
    throw std::invalid_argument("ngram_limits: expected ascending numbers above 0, the last 1");
}

// Stream of n-gram lengths, separate from the stream that the masks are drawn from.
class NgramLengths {
 public:
  explicit NgramLengths(const NgramRules& rules)
      : limits_(rules.limits), random_(RandomStream::of_number(rules.seed)) {}

  uint32_t draw() { return ngram_length(limits_, random_.random()); }

 private:
  std::vector<double> limits_;
  RandomStream random_;
};

}  // namespace bertdata
