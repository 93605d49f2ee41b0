// CRC-32 as bzip2 uses it: polynomial 0x04C11DB7, highest bit first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wiki/bzip2/bit_reader.h"

namespace bertdata::bzip2 {

// rows[k][b] is the CRC of byte b followed by k zero bytes.
struct Crc32Table {
  static constexpr int kRows = 16;
  uint32_t rows[kRows][256];
  Crc32Table() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte << 24;
      for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ (value >> 31 ? 0x04C11DB7u : 0);
      rows[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; ++byte)
      for (int row = 1; row < kRows; ++row)
        rows[row][byte] = rows[row - 1][byte] << 8 ^ rows[0][rows[row - 1][byte] >> 24];
  }
};

// Returns the contribution of four bytes to the checksum. rows: the table's row for the last of them.
inline uint32_t crc32_of(uint32_t word, const uint32_t (*rows)[256]) {
  return (rows[3][word >> 24] ^ rows[2][word >> 16 & 255]) ^ (rows[1][word >> 8 & 255] ^ rows[0][word & 255]);
}

// Computes the CRC, 16 bytes at a time. The contributions of the last 12 bytes do not depend on the step before, so
// only the first four bytes wait for it.
inline uint32_t crc32(const uint8_t* data, size_t size) {
  static const Crc32Table table;
  const auto& t = table.rows;
  uint32_t crc = ~0u;
  for (; size >= 16; data += 16, size -= 16) {
    const uint64_t high = load_big_endian(data), low = load_big_endian(data + 8);
    const uint32_t others = crc32_of(static_cast<uint32_t>(high), t + 8) ^
                            crc32_of(static_cast<uint32_t>(low >> 32), t + 4) ^
                            crc32_of(static_cast<uint32_t>(low), t);
    crc = crc32_of(static_cast<uint32_t>(high >> 32) ^ crc, t + 12) ^ others;
  }
  for (; size; ++data, --size) crc = crc << 8 ^ t[0][crc >> 24 ^ *data];
  return ~crc;
}

}  // namespace bertdata::bzip2
