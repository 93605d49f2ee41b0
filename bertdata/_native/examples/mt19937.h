// Mersenne Twister MT19937, seeded as CPython or as NumPy seeds it, and the draws built on its outputs (random,
// randint, shuffle). Twin of examples/random_stream.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
// Compile the function twice, for AVX2 and for the baseline. The loader picks the variant that the CPU supports.
#define BERTDATA_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define BERTDATA_VECTOR_CLONES
#endif

namespace bertdata {

constexpr size_t kTwisterWords = 624;

namespace twister {

// One step of the recurrence: the top bit of `upper` and the low 31 bits of `lower`, shifted and combined with `far`.
inline uint32_t twist(uint32_t upper, uint32_t lower, uint32_t far) {
  const uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
  return far ^ (y >> 1) ^ (0x9908b0dfu & (0u - (y & 1u)));
}

// Computes the next 624 outputs at once. An iteration reads state words that are at least 227 iterations old or that
// no earlier iteration has written, so the compiler can vectorise the loops.
BERTDATA_VECTOR_CLONES inline void refill(uint32_t* __restrict state, uint32_t* __restrict out) {
  constexpr size_t n = kTwisterWords, m = 397;
  // state[k + m] is a word of the previous block, because k + m is ahead of k.
  for (size_t k = 0; k < n - m; ++k) state[k] = twist(state[k], state[k + 1], state[k + m]);
// Here the index wraps around to a word of the new block, 227 words behind k.
#pragma GCC ivdep
  for (size_t k = n - m; k < n - 1; ++k) state[k] = twist(state[k], state[k + 1], state[k + m - n]);
  state[n - 1] = twist(state[n - 1], state[0], state[m - 1]);
  // Tempering: the outputs are the state words with their bits mixed. The state itself stays untempered.
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

// Random stream with the draws of Python's `random` module.
class RandomStream {
 public:
  // Seeds the stream as CPython's `random.seed(int)` does (init_by_array of the reference implementation).
  // key: absolute value of the seed in 32-bit digits, least significant first, and {0} for a seed of zero.
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

  // Seeds the stream as numpy.random.seed(number) does.
  static RandomStream of_number(uint32_t number) { return RandomStream(number); }

  uint32_t next() {
    if (used_ == kTwisterWords) refill();
    return outputs_[used_++];
  }

  // Returns a double in [0, 1) with 53 random bits, taken from two outputs (27 and 26 bits), as random.random().
  double random() {
    const uint32_t a = next() >> 5, b = next() >> 6;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
  }

  // Returns a uniform integer in [0, n), n >= 1. Like Python's _randbelow: takes the top bit_length(n) bits of an
  // output and draws again until the value is below n.
  uint32_t below(uint32_t n) {
    const uint32_t shift = 32u - bit_length(n);
    uint32_t draw;
    do draw = next() >> shift;
    while (draw >= n);
    return draw;
  }

  // Returns a uniform integer in [first, last], both included.
  uint32_t randint(uint32_t first, uint32_t last) { return first + below(last - first + 1); }

  // Shuffles in place by Fisher-Yates from the end, with the draws of random.shuffle.
  template <class T>
  void shuffle(T* items, uint32_t count) {
    draw_places(count, 0, [items](uint32_t last, uint32_t other) { swap_items(items, last, other); });
  }

  // Makes all draws of shuffle(), but only the first `needed` places get their items. The other places are left
  // undefined. An item that shuffle() would move to one of them never moves again, so writing it can be skipped.
  template <class T>
  void shuffle_first(T* items, uint32_t count, uint32_t needed) {
    uint32_t last = draw_places(count, needed, [items](uint32_t at, uint32_t other) { items[other] = items[at]; });
    draw_places(last + 1, 0, [items](uint32_t at, uint32_t other) { swap_items(items, at, other); });
  }

  // Makes the draws of a shuffle of `count` items without moving anything, to keep the stream in step.
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

  // For last = count - 1 down to max(needed, 1): draws other = below(last + 1) and calls place(last, other). Returns
  // the largest `last` that was not processed.
  // A rejected draw calls place(last, last), which changes nothing, and leaves `last` as it is. The loop therefore has
  // no branch that depends on the draw. The CPU could not predict such a branch.
  template <class Place>
  uint32_t draw_places(uint32_t count, uint32_t needed, Place place) {
    if (count < 2) return 0;
    const uint32_t lowest = std::max(needed, 1u);
    uint32_t last = count - 1;
    while (last >= lowest) {
      // All values of last + 1 with the same bit length use the same shift, so a run of them shares one inner loop.
      const uint32_t bits = bit_length(last + 1), shift = 32u - bits;
      const uint32_t stop = std::max(lowest, (1u << (bits - 1)) - 1);  // smallest `last` with this bit length
      while (last >= stop) {
        if (used_ == kTwisterWords) refill();
        const uint32_t* out = outputs_ + used_;
        const uint32_t* const end = outputs_ + kTwisterWords;
        // Read the outputs in place instead of calling next() for each draw.
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
