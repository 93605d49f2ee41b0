// CRC-32C (Castagnoli) and the masked form that TFRecord files store. Twin of shards/crc32c.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define BERTDATA_HAS_SSE42 1
#include <nmmintrin.h>
#endif

namespace bertdata {

// Table for slicing by eight: rows[k][b] is the CRC of byte b followed by k zero bytes.
struct Crc32cTable {
  uint32_t rows[8][256];
  Crc32cTable() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1u)));
      rows[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; ++byte)
      for (int row = 1; row < 8; ++row)
        rows[row][byte] = rows[row - 1][byte] >> 8 ^ rows[0][rows[row - 1][byte] & 255];
  }
};

// Updates a CRC, eight bytes at a time. `crc` is the inverted running value.
inline uint32_t crc32c_by_table(uint32_t crc, const uint8_t* data, size_t size) {
  static const Crc32cTable table;
  const auto& t = table.rows;
  for (; size >= 8; data += 8, size -= 8) {
    uint32_t low, high;
    std::memcpy(&low, data, 4);
    std::memcpy(&high, data + 4, 4);
    // Each byte's contribution is looked up separately, so the eight look-ups do not wait for each other.
    low ^= crc;
    crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^ t[3][high & 255] ^
          t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
  }
  for (; size; ++data, --size) crc = crc >> 8 ^ t[0][(crc ^ *data) & 255];
  return crc;
}

#ifdef BERTDATA_HAS_SSE42
__attribute__((target("sse4.2"))) inline uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t* data,
                                                                        size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t piece;
    std::memcpy(&piece, data, 8);
    wide = _mm_crc32_u64(wide, piece);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

// Updates four CRCs over inputs of equal length at once. The instruction takes three cycles but can start every cycle,
// so with a single input two of three cycles would be lost. A remainder of less than 8 bytes is left out.
__attribute__((target("sse4.2"))) inline void crc32c_four(uint32_t crc[4], const uint8_t* const data[4],
                                                          size_t size) {
  uint64_t a = crc[0], b = crc[1], c = crc[2], d = crc[3];
  for (size_t i = 0; i + 8 <= size; i += 8) {
    uint64_t w, x, y, z;
    std::memcpy(&w, data[0] + i, 8);
    std::memcpy(&x, data[1] + i, 8);
    std::memcpy(&y, data[2] + i, 8);
    std::memcpy(&z, data[3] + i, 8);
    a = _mm_crc32_u64(a, w);
    b = _mm_crc32_u64(b, x);
    c = _mm_crc32_u64(c, y);
    d = _mm_crc32_u64(d, z);
  }
  crc[0] = static_cast<uint32_t>(a), crc[1] = static_cast<uint32_t>(b);
  crc[2] = static_cast<uint32_t>(c), crc[3] = static_cast<uint32_t>(d);
}
#endif

// Whether this CPU has the SSE 4.2 CRC instruction.
inline bool has_crc_instruction() {
#ifdef BERTDATA_HAS_SSE42
  static const bool has = __builtin_cpu_supports("sse4.2");
  return has;
#else
  return false;
#endif
}

inline uint32_t crc32c_update(uint32_t inverted, const uint8_t* data, size_t size) {
#ifdef BERTDATA_HAS_SSE42
  if (has_crc_instruction()) return crc32c_by_instruction(inverted, data, size);
#endif
  return crc32c_by_table(inverted, data, size);
}

inline uint32_t crc32c(const uint8_t* data, size_t size) { return ~crc32c_update(~0u, data, size); }

// TFRecord stores CRCs rotated and offset, because the CRC of data that contains its own CRC is a weak check.
inline uint32_t mask_crc(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

}  // namespace bertdata
