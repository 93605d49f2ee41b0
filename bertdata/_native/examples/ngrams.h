// Lengths of n-grams of words, in files and at load. Twin of NgramLengths in examples/sop/ngrams.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/mt19937.h"

namespace bertdata {

struct NgramRules {
  std::vector<double> limits;  // of a draw, the last 1; none: words are masked one by one
  uint32_t seed = 0;           // of the lengths, as numpy.random.seed takes it
  bool permutes = false;       // shuffles the ids of as many other positions
};

// The number of words by a number in [0, 1): the place of the first limit above it, from 1.
inline uint32_t ngram_length(const std::vector<double>& limits, double at) {
  uint32_t words = 1;
  while (limits[words - 1] <= at) ++words;
  return words;
}

// None, or ascending numbers of which the last is above every draw.
inline void check_limits(const std::vector<double>& limits) {
  if (limits.empty()) return;
  if (!std::is_sorted(limits.begin(), limits.end()) || !(limits.front() > 0) || !(limits.back() == 1))
    throw std::invalid_argument("ngram_limits: expected ascending numbers above 0, the last 1");
}

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
