// Masks drawn as fairseq draws them. Twin of examples/fairseq/masks.py and streams.py, whose docstring lists the draws
// in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/mt19937.h"
#include "examples/pcg64.h"

namespace bertdata {

// Settings of fairseq's masks, prepared for a dictionary.
struct FairseqRules {
  // most: room for masks in an example. mask: id of the mask token.
  uint32_t most, mask;
  // Shares of the chosen units that get random ids, and that keep their ids.
  double random_share, kept_share;
  std::vector<double> limits;        // by id: cumulative share of the id among random tokens
  std::vector<uint8_t> begins_word;  // by id: the token begins a word; empty: every id is a unit
  size_t vocabulary;
  // Number of consecutive units that each mask covers.
  uint32_t multiple;
};

// Stream of fairseq up to v0.12: draws as numpy.random does after numpy.random.seed(seed).
class FairseqTwister {
 public:
  explicit FairseqTwister(uint64_t seed) : words_(RandomStream::of_number(static_cast<uint32_t>(seed))) {}

  double random() { return words_.random(); }

  // Chooses `count` distinct integers below `population`: the first ones of numpy.random.permutation. The third
  // argument, scratch of the other stream, is not used.
  void choose(uint32_t population, uint32_t count, std::vector<uint8_t>&, std::vector<uint32_t>& chosen) {
    chosen.resize(population);
    std::iota(chosen.begin(), chosen.end(), 0u);
    for (uint32_t place = population; place-- > 1;) {
      // Legacy NumPy: the low bits of an output, drawn again while above `place`.
      const uint32_t mask = 0xFFFFFFFFu >> (32u - bit_length(place));
      uint32_t other;
      do other = words_.next() & mask;
      while (other > place);
      std::swap(chosen[place], chosen[other]);
    }
    chosen.resize(count);
  }

 private:
  RandomStream words_;
};

// Masks one example at a time. The buffers are reused for the next example.
class FairseqMasker {
 public:
  explicit FairseqMasker(const FairseqRules& rules) : rules_(rules) {}

  // Masks `length` ids in place, all in the vocabulary, and returns the number of masks.
  // rate: share of the units to mask.
  // positions, labels: output, room for rules.most entries each.
  // Throws std::length_error, with nothing written, if more masks were drawn than there is room for.
  template <class Stream>
  uint32_t mask(int32_t* ids, uint32_t length, double rate, Stream& stream, int32_t* positions, int32_t* labels) {
    find_units(ids, length);
    const uint32_t count = static_cast<uint32_t>(units_.size()) - 1;
    // Rounding up or down at random keeps the expected number exact. rate * count = 15.3: 16 with probability 0.3,
    // else 15.
    const double wanted = rate * count / rules_.multiple + stream.random();
    if (is_taken_.size() < count) is_taken_.resize(count);
    stream.choose(count, wanted < count ? static_cast<uint32_t>(wanted) : count, is_taken_, starts_);
    becomes_.assign(count, kUntouched);
    // Masks may overlap, so fewer than wanted * multiple units can result.
    for (const uint32_t start : starts_)
      for (uint32_t unit = start; unit < std::min(count, start + rules_.multiple); ++unit) becomes_[unit] = kMask;
    check_room(count);
    leave_some(count, stream);
    return replace(ids, count, stream, positions, labels);
  }

 private:
  // What happens to a unit. kUntouched must be 0, so that any chosen unit tests as true.
  enum Change : uint8_t { kUntouched, kMask, kKept, kRandom };

  // Splits the ids into units, the words or single ids that are masked as a whole. Unit u is positions units_[u] up to
  // units_[u + 1].
  void find_units(const int32_t* ids, uint32_t length) {
    units_.clear();
    for (uint32_t position = 0; position < length; ++position)
      if (rules_.begins_word.empty() || rules_.begins_word[static_cast<size_t>(ids[position])])
        units_.push_back(position);
    units_.push_back(length);
  }

  // Throws std::length_error if the chosen units have more ids than there is room for.
  void check_room(uint32_t count) const {
    uint32_t masks = 0;
    for (uint32_t unit = 0; unit < count; ++unit)
      if (becomes_[unit]) masks += units_[unit + 1] - units_[unit];
    if (masks > rules_.most) throw std::length_error("an example has more masks than there is room for");
  }

  // Draws which chosen units get random ids or keep their ids instead of becoming the mask.
  template <class Stream>
  void leave_some(uint32_t count, Stream& stream) {
    const double share = rules_.random_share + rules_.kept_share;
    if (share <= 0) return;
    const uint8_t other = rules_.random_share == 0 ? kKept : kRandom;
    // fairseq draws rand(n) for all n units at once, so units that were not chosen use a draw too.
    for (uint32_t unit = 0; unit < count; ++unit) {
      const bool is_below = stream.random() < share;
      if (is_below && becomes_[unit]) becomes_[unit] = other;
    }
    if (rules_.random_share == 0 || rules_.kept_share == 0) return;
    const double kept = rules_.kept_share / share;
    // Of the units that do not become the mask, a share of kept / (kept + random) keeps its ids.
    for (uint32_t unit = 0; unit < count; ++unit) {
      const bool is_below = stream.random() < kept;
      if (is_below && becomes_[unit] == kRandom) becomes_[unit] = kKept;
    }
  }

  // Writes the masks in ascending order and returns their number. Each id of a random unit has its own draw.
  template <class Stream>
  uint32_t replace(int32_t* ids, uint32_t count, Stream& stream, int32_t* positions, int32_t* labels) const {
    uint32_t made = 0;
    for (uint32_t unit = 0; unit < count; ++unit) {
      if (!becomes_[unit]) continue;
      for (uint32_t position = units_[unit]; position < units_[unit + 1]; ++position, ++made) {
        positions[made] = static_cast<int32_t>(position);
        labels[made] = ids[position];
        if (becomes_[unit] == kMask) ids[position] = static_cast<int32_t>(rules_.mask);
        if (becomes_[unit] == kRandom) ids[position] = random_id(stream.random());
      }
    }
    return made;
  }

  // Returns the first id whose cumulative share is above the draw.
  int32_t random_id(double drawn) const {
    return static_cast<int32_t>(std::upper_bound(rules_.limits.begin(), rules_.limits.end(), drawn) -
                                rules_.limits.begin());
  }

  const FairseqRules& rules_;
  std::vector<uint32_t> units_, starts_;
  std::vector<uint8_t> is_taken_, becomes_;
};

}  // namespace bertdata
