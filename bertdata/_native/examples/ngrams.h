// Lengths of n-grams of words. Twin of NgramLengths in examples/sop/ngrams.py.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "examples/mt19937.h"

namespace bertdata {

struct NgramRules {
  std::vector<double> limits;  // of a draw, the last 1; none: words are masked one by one
  uint32_t seed = 0;           // of the lengths, as numpy.random.seed takes it
  bool permutes = false;       // shuffles the ids of as many other positions
};

class NgramLengths {
 public:
  explicit NgramLengths(const NgramRules& rules)
      : limits_(rules.limits), random_(RandomStream::of_number(rules.seed)) {}

  uint32_t draw() {
    const double at = random_.random();
    uint32_t words = 1;
    while (limits_[words - 1] <= at) ++words;
    return words;
  }

 private:
  std::vector<double> limits_;
  RandomStream random_;
};

}  // namespace bertdata
