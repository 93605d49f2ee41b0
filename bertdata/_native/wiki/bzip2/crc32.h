// bzip2's CRC-32: polynomial 0x04C11DB7, highest bit first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wiki/bzip2/bit_reader.h"

namespace bertdata::bzip2 {

struct Crc32Table {
  uint32_t rows[8][256];
  Crc32Table() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte << 24;
      for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ (value >> 31 ? 0x04C11DB7u : 0);
      rows[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; ++byte)
      for (int row = 1; row < 8; ++row)
        rows[row][byte] = rows[row - 1][byte] << 8 ^ rows[0][rows[row - 1][byte] >> 24];
  }
};

// Eight bytes a step.
inline uint32_t crc32(const uint8_t* data, size_t size) {
  static const Crc32Table table;
  const auto& t = table.rows;
  uint32_t crc = ~0u;
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t piece = load_big_endian(data) ^ static_cast<uint64_t>(crc) << 32;
    crc = t[7][piece >> 56] ^ t[6][piece >> 48 & 255] ^ t[5][piece >> 40 & 255] ^ t[4][piece >> 32 & 255] ^
          t[3][piece >> 24 & 255] ^ t[2][piece >> 16 & 255] ^ t[1][piece >> 8 & 255] ^ t[0][piece & 255];
  }
  for (; size; ++data, --size) crc = crc << 8 ^ t[0][crc >> 24 ^ *data];
  return ~crc;
}

}  // namespace bertdata::bzip2
