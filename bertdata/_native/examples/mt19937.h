// MT19937 with CPython's seeding, or NumPy's, and derived draws. Twin of examples/random_stream.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define BERTDATA_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define BERTDATA_VECTOR_CLONES
#endif

namespace bertdata {

constexpr size_t kTwisterWords = 624;

namespace twister {

inline uint32_t twist(uint32_t upper, uint32_t lower, uint32_t far) {
  const uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
  return far ^ (y >> 1) ^ (0x9908b0dfu & (0u - (y & 1u)));
}

// Makes the next 624 outputs at once. The loops carry no dependency shorter than 227 words, which
// lets the compiler use whole vectors.
BERTDATA_VECTOR_CLONES inline void refill(uint32_t* __restrict state, uint32_t* __restrict out) {
  constexpr size_t n = kTwisterWords, m = 397;
  for (size_t k = 0; k < n - m; ++k) state[k] = twist(state[k], state[k + 1], state[k + m]);
#pragma GCC ivdep
  for (size_t k = n - m; k < n - 1; ++k) state[k] = twist(state[k], state[k + 1], state[k + m - n]);
  state[n - 1] = twist(state[n - 1], state[0], state[m - 1]);
  for (size_t k = 0; k < n; ++k) {
    uint32_t y = state[k];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[k] = y ^ (y >> 18);
  }
}

}  // namespace twister

inline uint32_t bit_length(uint32_t n) { return n ? 32u - static_cast<uint32_t>(__builtin_clz(n)) : 0u; }

class RandomStream {
 public:
  // key: the absolute value of the seed in 32-bit digits, least significant first. {0} for zero.
  explicit RandomStream(const std::vector<uint32_t>& key) : RandomStream(19650218u) {
    size_t i = 1, j = 0;
    const auto step = [&] {
      if (++i >= kTwisterWords) {
        state_[0] = state_[kTwisterWords - 1];
        i = 1;
      }
    };
    for (size_t k = std::max(kTwisterWords, key.size()); k; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + key[j] +
                  static_cast<uint32_t>(j);
      if (++j >= key.size()) j = 0;
      step();
    }
    for (size_t k = kTwisterWords - 1; k; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) -
                  static_cast<uint32_t>(i);
      step();
    }
    state_[0] = 0x80000000u;
  }

  // As numpy.random.seed(number) seeds it. Twin of examples/random_stream.py.
  static RandomStream of_number(uint32_t number) { return RandomStream(number); }

  uint32_t next() {
    if (used_ == kTwisterWords) refill();
    return outputs_[used_++];
  }

  double random() {
    const uint32_t a = next() >> 5, b = next() >> 6;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
  }

  // Uniform below n, n >= 1, by rejection from the top bits.
  uint32_t below(uint32_t n) {
    const uint32_t shift = 32u - bit_length(n);
    uint32_t draw;
    do draw = next() >> shift;
    while (draw >= n);
    return draw;
  }

  uint32_t randint(uint32_t first, uint32_t last) { return first + below(last - first + 1); }

  // Fisher-Yates from the end, as random.shuffle.
  template <class T>
  void shuffle(T* items, uint32_t count) {
    draw_places(count, 0, [items](uint32_t last, uint32_t other) { swap_items(items, last, other); });
  }

  // The same draws, for a caller who needs only the first `needed` items: those beyond are spoilt,
  // since an item that has found its place there need not be written.
  template <class T>
  void shuffle_first(T* items, uint32_t count, uint32_t needed) {
    uint32_t last = draw_places(count, needed, [items](uint32_t at, uint32_t other) { items[other] = items[at]; });
    draw_places(last + 1, 0, [items](uint32_t at, uint32_t other) { swap_items(items, at, other); });
  }

  // The draws of a shuffle that nobody needs.
  void skip_shuffle(uint32_t count) {
    draw_places(count, 0, [](uint32_t, uint32_t) {});
  }

 private:
  explicit RandomStream(uint32_t number) {
    state_[0] = number;
    for (uint32_t i = 1; i < kTwisterWords; ++i)
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }

  template <class T>
  static void swap_items(T* items, uint32_t a, uint32_t b) {
    const T item = items[a];
    items[a] = items[b];
    items[b] = item;
  }

  // For last = count - 1 down to max(needed, 1): draws other = below(last + 1), calls place(last, other).
  // Returns the first last not done. A rejected draw places an item on itself, so the only branches
  // are loop ends: rejections, which no predictor can guess, cost no misprediction.
  template <class Place>
  uint32_t draw_places(uint32_t count, uint32_t needed, Place place) {
    if (count < 2) return 0;
    const uint32_t lowest = std::max(needed, 1u);
    uint32_t last = count - 1;
    while (last >= lowest) {
      const uint32_t bits = bit_length(last + 1), shift = 32u - bits;
      const uint32_t stop = std::max(lowest, (1u << (bits - 1)) - 1);  // same bit length down to here
      while (last >= stop) {
        if (used_ == kTwisterWords) refill();
        const uint32_t* out = outputs_ + used_;
        const uint32_t* const end = outputs_ + kTwisterWords;
        while (out != end && last >= stop) {
          const uint32_t draw = *out++ >> shift;
          const bool accepted = draw <= last;
          place(last, accepted ? draw : last);
          last -= accepted;
        }
        used_ = static_cast<size_t>(out - outputs_);
      }
    }
    return last;
  }

  void refill() {
    twister::refill(state_, outputs_);
    used_ = 0;
  }

  uint32_t state_[kTwisterWords];
  uint32_t outputs_[kTwisterWords];
  size_t used_ = kTwisterWords;
};

}  // namespace bertdata
