// PCG64 and PCG64DXSM, seeded as NumPy seeds them, and NumPy's draws from them. Twin of examples/pcg_stream.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "examples/mt19937.h"

namespace bertdata {

// Unsigned 128-bit integer. Products and sums wrap around.
struct Wide {
  uint64_t high, low;
};

// Returns the full 128-bit product of two 64-bit integers.
inline Wide wide_product(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return {static_cast<uint64_t>(product >> 64), static_cast<uint64_t>(product)};
#else
  // Schoolbook multiplication of 32-bit halves, for compilers without 128-bit integers.
  const uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32, b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
  const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (middle & 0xFFFFFFFFu);
  return {a1 * b1 + (middle >> 32) + (other >> 32), other << 32 | (low & 0xFFFFFFFFu)};
#endif
}
inline Wide operator+(Wide a, Wide b) {
  const uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low), low};
}
inline Wide operator*(Wide a, Wide b) {
  Wide product = wide_product(a.low, b.low);
  product.high += a.high * b.low + a.low * b.high;
  return product;
}

constexpr Wide kPcgMultiplier{0x2360ED051FC65DA4ull, 0x4385DF649FCCF645ull};

// The first eight words of numpy.random.SeedSequence(seed), for a seed below 2**64.
class SeedWords {
 public:
  explicit SeedWords(uint64_t seed) {
    std::array<uint32_t, 4> pool{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
    uint32_t constant = 0x43B0D7E5u;
    for (uint32_t& word : pool) word = hashed(word, constant, 0x931E8875u);
    for (size_t source = 0; source < 4; ++source)
      for (size_t target = 0; target < 4; ++target)
        if (source != target) pool[target] = mixed(pool[target], hashed(pool[source], constant, 0x931E8875u));
    constant = 0x8B51F9DDu;
    for (size_t i = 0; i < 8; ++i) words_[i] = hashed(pool[i % 4], constant, 0x58F38DEDu);
  }

  // Returns 128 bits made of words first to first + 3: the high 64 bits come first, and in each half the low word
  // first.
  Wide wide(size_t first) const { return {longs(first), longs(first + 2)}; }

 private:
  uint64_t longs(size_t first) const { return static_cast<uint64_t>(words_[first + 1]) << 32 | words_[first]; }
  static uint32_t hashed(uint32_t word, uint32_t& constant, uint32_t multiplier) {
    word ^= constant;
    constant *= multiplier;
    word *= constant;
    return word ^ word >> 16;
  }
  static uint32_t mixed(uint32_t one, uint32_t other) {
    const uint32_t found = 0xCA01F9DDu * one - 0x4973F715u * other;
    return found ^ found >> 16;
  }

  std::array<uint32_t, 8> words_;
};

// NumPy's draws from a PCG generator. The state can be saved and restored.
template <class Outputs>
class PcgDraws {
 public:
  struct State {
    Wide state;
    uint32_t half;
    bool has_half;
  };

  // The increment must be odd. The two multiply-and-add steps are PCG's standard initialisation.
  explicit PcgDraws(uint64_t seed) {
    const SeedWords words(seed);
    increment_ = words.wide(4);
    increment_ = {increment_.high << 1 | increment_.low >> 63, increment_.low << 1 | 1};
    kept_.state = (increment_ + words.wide(0)) * kPcgMultiplier + increment_;
  }

  const State& state() const { return kept_; }
  void set_state(const State& state) { kept_ = state; }

  uint64_t next_long() { return Outputs::next(kept_.state, increment_); }

  // Returns the low half of a 64-bit output and keeps its high half for the next call of next(). next_long() does not
  // touch the kept half, as in NumPy.
  uint32_t next() {
    if (kept_.has_half) {
      kept_.has_half = false;
      return kept_.half;
    }
    const uint64_t drawn = next_long();
    kept_.half = static_cast<uint32_t>(drawn >> 32);
    kept_.has_half = true;
    return static_cast<uint32_t>(drawn);
  }

  // Returns a double in [0, 1) with 53 random bits.
  double random() { return static_cast<double>(next_long() >> 11) * (1.0 / 9007199254740992.0); }

  // Returns a uniform integer in [0, limit), limit >= 1, by Lemire's method (2019). For a limit of 1 nothing is drawn.
  uint32_t below(uint32_t limit) {
    if (limit == 1) return 0;
    uint64_t product = static_cast<uint64_t>(next()) * limit;
    if (static_cast<uint32_t>(product) < limit) {
      // Low halves below 2^32 mod limit are rejected: they would make some results more likely than others.
      const uint32_t least = (0u - limit) % limit;
      while (static_cast<uint32_t>(product) < least) product = static_cast<uint64_t>(next()) * limit;
    }
    return static_cast<uint32_t>(product >> 32);
  }

  // Chooses `count` distinct integers below `population`, in random order, as Generator.choice(population, count,
  // replace=False) does.
  // taken: scratch of at least `population` zeros, zeros again on return.
  void choose(uint32_t population, uint32_t count, std::vector<uint8_t>& taken, std::vector<uint32_t>& chosen) {
    chosen.clear();
    // NumPy's rule: for a large share of a large population, shuffle only the end of 0, 1, ..., population - 1.
    if (population > kMany && count > population / 50) {
      chosen.resize(population);
      std::iota(chosen.begin(), chosen.end(), 0u);
      shuffle_end(chosen, population > count ? population - count : 1);
      chosen.erase(chosen.begin(), chosen.end() - count);
      return;
    }
    // Otherwise Floyd's algorithm: `last` stands in for a number that was drawn before, which keeps all subsets
    // equally likely without drawing again.
    for (uint32_t last = population - count; last < population; ++last) {
      const uint32_t drawn = below(last + 1), found = taken[drawn] ? last : drawn;
      taken[found] = 1;
      chosen.push_back(found);
    }
    for (const uint32_t one : chosen) taken[one] = 0;
    shuffle_end(chosen, 1);
  }

  // Shuffles the items as Generator.permutation does: each place is drawn from the low bits of an output, and drawn
  // again while it is too large.
  void permute(std::vector<uint32_t>& items) {
    for (uint32_t place = static_cast<uint32_t>(items.size()); place-- > 1;) {
      const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << bit_length(place)) - 1);
      uint32_t other;
      do other = next() & mask;
      while (other > place);
      std::swap(items[place], items[other]);
    }
  }

 private:
  static constexpr uint32_t kMany = 10000;

  // Fisher-Yates from the end, down to index `first`.
  void shuffle_end(std::vector<uint32_t>& items, uint32_t first) {
    for (uint32_t place = static_cast<uint32_t>(items.size()); place-- > first;)
      std::swap(items[place], items[below(place + 1)]);
  }

  Wide increment_;
  State kept_{};
};

// Output function XSL-RR of PCG64.
struct XslRr {
  static uint64_t next(Wide& state, Wide increment) {
    state = state * kPcgMultiplier + increment;
    const uint64_t mixed = state.high ^ state.low;
    const unsigned turn = static_cast<unsigned>(state.high >> 58);
    return mixed >> turn | mixed << ((64 - turn) & 63);
  }
};

// Output function DXSM of PCG64DXSM. The output is made from the state before the step.
struct Dxsm {
  static uint64_t next(Wide& state, Wide increment) {
    constexpr uint64_t multiplier = 0xDA942042E4DD58B5ull;
    uint64_t high = state.high;
    const uint64_t low = state.low | 1;
    state = state * Wide{0, multiplier} + increment;
    high ^= high >> 32;
    high *= multiplier;
    high ^= high >> 48;
    return high * low;
  }
};

using PcgStream = PcgDraws<XslRr>;
using DxsmStream = PcgDraws<Dxsm>;

}  // namespace bertdata
