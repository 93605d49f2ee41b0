// Undoes bzip2's first step, which stores a run as four equal bytes and a count of the equal bytes that follow.
// a a a a 3 b -> a a a a a a a b
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "column.h"

namespace bertdata::bzip2 {

// Returns true if none of the eight bytes at p starts four equal bytes. Reads eleven bytes.
inline bool has_no_run(const uint8_t* p) {
  uint64_t a, b, c, d;
  std::memcpy(&a, p, 8);
  std::memcpy(&b, p + 1, 8);
  std::memcpy(&c, p + 2, 8);
  std::memcpy(&d, p + 3, 8);
  const uint64_t differs = (a ^ b) | (b ^ c) | (c ^ d);  // a byte of this is 0 where four equal bytes start
  return !((differs - 0x0101010101010101u) & ~differs & 0x8080808080808080u);
}

// Appends the text to `out`. Returns false if it has more than `most` bytes.
inline bool expand_runs(const uint8_t* p, size_t size, size_t most, Column<uint8_t>& out) {
  const uint8_t* const end = p + size;
  size_t left = most;
  out.room(std::min(size, most));
  while (p < end) {
    const uint8_t* plain = p;
    while (end - p >= 11 && has_no_run(p)) p += 8;
    while (p < end && !(end - p >= 4 && p[0] == p[1] && p[0] == p[2] && p[0] == p[3])) ++p;
    const size_t repeats = end - p > 4 ? p[4] : 0;
    const uint8_t* const behind = p + std::min<size_t>(4, static_cast<size_t>(end - p));
    const size_t copied = static_cast<size_t>(behind - plain), added = copied + repeats;
    if (added > left) return false;
    left -= added;
    uint8_t* const text = out.room(added);
    std::memcpy(text, plain, copied);
    if (repeats) std::memset(text + copied, *p, repeats);
    out.added(added);
    p = behind + (behind < end);
  }
  return true;
}

}  // namespace bertdata::bzip2
