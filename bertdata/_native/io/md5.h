// MD5 (RFC 1321) of up to eight streams in parallel, each in a lane of a vector. Twin of io/digests.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define BERTDATA_HAS_AVX2 1
#include <immintrin.h>
#endif

namespace bertdata {

constexpr size_t kMd5Block = 64;
constexpr size_t kMd5Lanes = 8;

struct Md5State {
  uint32_t words[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
};

// floor(2^32 * |sin(i + 1)|)
constexpr uint32_t kMd5Sines[64] = {
    0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u,
    0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u,
    0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u,
    0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au,
    0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u,
    0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u,
    0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u,
    0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u};

constexpr int kMd5Turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// Returns the index of the block's word that a step uses.
constexpr int md5_word(int step) {
  return step < 16 ? step : step < 32 ? (5 * step + 1) & 15 : step < 48 ? (3 * step + 5) & 15 : (7 * step) & 15;
}

// The 64 steps on Words, which is a 32-bit number or a vector of them. `words` is the block, `a` to `d` the state.
// This is a macro because vector code must be compiled for its CPU in the function that contains it.
#define BERTDATA_MD5_STEPS(Words, words, a, b, c, d)                            \
  _Pragma("GCC unroll 64") for (int step = 0; step < 64; ++step) {              \
    Words mixed;                                                                \
    if (step < 16)                                                              \
      mixed = ((c ^ d) & b) ^ d;                                                \
    else if (step < 32)                                                         \
      mixed = ((b ^ c) & d) ^ c;                                                \
    else if (step < 48)                                                         \
      mixed = b ^ c ^ d;                                                        \
    else                                                                        \
      mixed = c ^ (b | ~d);                                                     \
    mixed = mixed + (a + words[md5_word(step)] + kMd5Sines[step]);              \
    const int turn = kMd5Turns[step / 16][step % 4];                            \
    a = d, d = c, c = b;                                                        \
    b = b + ((mixed << turn) | (mixed >> (32 - turn)));                         \
  }

inline void md5_blocks(Md5State& state, const uint8_t* data, size_t blocks) {
  for (; blocks; --blocks, data += kMd5Block) {
    uint32_t words[16];
    std::memcpy(words, data, sizeof words);  // needs a little-endian host, as all these kernels do
    uint32_t a = state.words[0], b = state.words[1], c = state.words[2], d = state.words[3];
    BERTDATA_MD5_STEPS(uint32_t, words, a, b, c, d)
    state.words[0] += a, state.words[1] += b, state.words[2] += c, state.words[3] += d;
  }
}

#ifdef BERTDATA_HAS_AVX2
// Transposes eight rows of 32 bytes into eight vectors: out[w] holds word w of every row.
__attribute__((target("avx2"), always_inline)) inline void md5_transpose(const uint8_t* const data[kMd5Lanes],
                                                                         size_t at, __m256i out[8]) {
  __m256i rows[8], pairs[8], fours[8];
  for (int i = 0; i < 8; ++i) rows[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data[i] + at));
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      fours[i + 2 * k] = _mm256_unpacklo_epi64(pairs[i + k], pairs[i + 2 + k]);
      fours[i + 2 * k + 1] = _mm256_unpackhi_epi64(pairs[i + k], pairs[i + 2 + k]);
    }
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    out[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

// Processes `blocks` blocks of each of eight streams. states[w][i]: word w of the state of stream i.
__attribute__((target("avx2"))) inline void md5_eight(uint32_t states[4][kMd5Lanes],
                                                      const uint8_t* const data[kMd5Lanes], size_t blocks) {
  typedef uint32_t Words __attribute__((vector_size(32)));
  Words a, b, c, d;
  std::memcpy(&a, states[0], sizeof a);
  std::memcpy(&b, states[1], sizeof b);
  std::memcpy(&c, states[2], sizeof c);
  std::memcpy(&d, states[3], sizeof d);
  for (size_t at = 0; at < blocks * kMd5Block; at += kMd5Block) {
    __m256i columns[16];
    md5_transpose(data, at, columns);
    md5_transpose(data, at + 32, columns + 8);
    const Words* const words = reinterpret_cast<const Words*>(columns);
    const Words before[4] = {a, b, c, d};
    BERTDATA_MD5_STEPS(Words, words, a, b, c, d)
    a += before[0], b += before[1], c += before[2], d += before[3];
  }
  std::memcpy(states[0], &a, sizeof a);
  std::memcpy(states[1], &b, sizeof b);
  std::memcpy(states[2], &c, sizeof c);
  std::memcpy(states[3], &d, sizeof d);
}
#endif

#undef BERTDATA_MD5_STEPS

inline bool has_md5_lanes() {
#ifdef BERTDATA_HAS_AVX2
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

// The MD5 digests of several streams that grow at the same time.
class Md5Streams {
 public:
  struct Piece {
    const uint8_t* data;
    size_t size;
  };

  explicit Md5Streams(size_t streams) : streams_(streams) {}
  size_t size() const { return streams_.size(); }

  // Appends a piece to each stream: pieces[i] to stream i.
  void update(std::vector<Piece> pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) fill_tail(streams_[i], pieces[i]);
    add_blocks(pieces);
    for (size_t i = 0; i < pieces.size(); ++i) keep_tail(streams_[i], pieces[i]);
  }

  // Returns the 16 bytes of a stream's digest so far.
  std::array<uint8_t, 16> digest(size_t stream) const {
    Stream end = streams_[stream];
    uint8_t last[2 * kMd5Block] = {};
    // Padding: a byte 0x80, zeros, and the length in bits in the last 8 bytes. It needs a second block if less than 9
    // bytes are left in the first.
    const size_t held = end.size % kMd5Block, size = held + 9 > kMd5Block ? 2 * kMd5Block : kMd5Block;
    std::memcpy(last, end.tail, held);
    last[held] = 0x80;
    const uint64_t bits = 8 * end.size;
    std::memcpy(last + size - 8, &bits, 8);
    md5_blocks(end.state, last, size / kMd5Block);
    std::array<uint8_t, 16> out;
    std::memcpy(out.data(), end.state.words, out.size());
    return out;
  }

 private:
  struct Stream {
    Md5State state;
    uint64_t size = 0;         // bytes appended so far
    uint8_t tail[kMd5Block];   // bytes after the last whole block
  };

  static void take(Piece& piece, size_t size) { piece.data += size, piece.size -= size; }

  // Completes the stream's unfinished block if the piece is long enough.
  static void fill_tail(Stream& stream, Piece& piece) {
    const size_t held = stream.size % kMd5Block;
    if (!held || piece.size < kMd5Block - held) return;
    std::memcpy(stream.tail + held, piece.data, kMd5Block - held);
    md5_blocks(stream.state, stream.tail, 1);
    stream.size += kMd5Block - held;
    take(piece, kMd5Block - held);
  }

  static void keep_tail(Stream& stream, const Piece& piece) {
    if (piece.size) std::memcpy(stream.tail + stream.size % kMd5Block, piece.data, piece.size);
    stream.size += piece.size;
  }

  static size_t whole_blocks(const Stream& stream, const Piece& piece) {
    return stream.size % kMd5Block ? 0 : piece.size / kMd5Block;
  }

  // Processes all whole blocks of the pieces: the eight longest pieces in parallel as long as there are at least two,
  // then the rest singly.
  void add_blocks(std::vector<Piece>& pieces) {
    std::vector<size_t> left;
    for (size_t i = 0; i < pieces.size(); ++i)
      if (whole_blocks(streams_[i], pieces[i])) left.push_back(i);
#ifdef BERTDATA_HAS_AVX2
    while (has_md5_lanes() && left.size() >= kLeastLanes) {
      // Longest first. The eight longest run in parallel until the shortest of them is used up.
      // blocks 9 7 7 2 -> 2 of each together -> 7 5 5 0 -> 5 of each together -> 2 left for the loop below
      const auto blocks = [&](size_t i) { return pieces[i].size / kMd5Block; };
      std::sort(left.begin(), left.end(), [&](size_t i, size_t k) { return blocks(i) > blocks(k); });
      add_in_lanes(left, pieces);
      left.erase(std::remove_if(left.begin(), left.end(), [&](size_t i) { return !blocks(i); }), left.end());
    }
#endif
    for (size_t i : left) {
      const size_t blocks = pieces[i].size / kMd5Block;
      md5_blocks(streams_[i].state, pieces[i].data, blocks);
      advance(i, pieces[i], blocks);
    }
  }

  void advance(size_t stream, Piece& piece, size_t blocks) {
    streams_[stream].size += blocks * kMd5Block;
    take(piece, blocks * kMd5Block);
  }

#ifdef BERTDATA_HAS_AVX2
  static constexpr size_t kLeastLanes = 2;  // lanes cost the same whether used or not

  // Processes the first eight of `left` as far as the shortest of them reaches. Lanes without a stream repeat the
  // first stream, and their result is dropped.
  void add_in_lanes(const std::vector<size_t>& left, std::vector<Piece>& pieces) {
    const size_t used = std::min(left.size(), kMd5Lanes), blocks = pieces[left[used - 1]].size / kMd5Block;
    uint32_t states[4][kMd5Lanes];
    const uint8_t* data[kMd5Lanes];
    for (size_t lane = 0; lane < kMd5Lanes; ++lane) {
      const size_t stream = left[lane < used ? lane : 0];
      data[lane] = pieces[stream].data;
      for (size_t word = 0; word < 4; ++word) states[word][lane] = streams_[stream].state.words[word];
    }
    md5_eight(states, data, blocks);
    for (size_t lane = 0; lane < used; ++lane) {
      for (size_t word = 0; word < 4; ++word) streams_[left[lane]].state.words[word] = states[word][lane];
      advance(left[lane], pieces[left[lane]], blocks);
    }
  }
#endif

  std::vector<Stream> streams_;
};

}  // namespace bertdata
