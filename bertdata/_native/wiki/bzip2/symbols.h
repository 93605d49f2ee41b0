// The symbols of a bzip2 block to the bytes of its transform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wiki/bzip2/bit_reader.h"
#include "wiki/bzip2/huffman.h"
#include "wiki/bzip2/inverse_bwt.h"
#include "wiki/bzip2/move_to_front.h"

namespace bertdata::bzip2 {

// The reading of a block's symbols. last has room for kMostBlockBytes + kSlack bytes: beyond the first of these
// a group is the last one.
struct Symbols {
  static constexpr unsigned kGroup = 50;
  static constexpr uint32_t kShortRun = 8;  // bytes that are written for any symbol
  static constexpr size_t kSlack = kGroup * kShortRun;

  BitReader reader;
  MoveToFront list;
  uint8_t* last;
  uint32_t* counts;
  uint32_t size, weight;  // of the bytes; of the next digit of a run's length

  // Reads a group of symbols that share a code, to its end or the block's. Returns the last one.
  // Plenty: so many bits follow that none can be missing.
  template <bool Plenty>
  Symbol read_group(const PrefixCode& code) {
    Symbols now = *this;  // in registers
    Symbol symbol = 0;
    for (unsigned i = 0; i < kGroup; i += 2) {
      Plenty ? now.reader.refill_quickly() : now.reader.refill();  // for two codes
      if (!now.add(symbol = code.find(now.reader.bits()))) break;
      if (!now.add(symbol = code.find(now.reader.bits()))) break;
    }
    *this = now;
    return symbol;
  }

  // A run's length has digits 1 and 2, lowest first. Each adds its part of the run, a repeat of the list's
  // front, so that all symbols are treated alike: a branch would often be mispredicted.
  [[gnu::always_inline]] bool add(Symbol symbol) {
    reader.skip(symbol & 31);
    if (symbol & (kIsEnd | kIsNone)) return false;
    const uint32_t is_digit = static_cast<uint32_t>(static_cast<int32_t>(symbol) >> 31);  // all bits or none
    const uint32_t repeats = 1 + (((weight << (symbol / kIsTwo & 1)) - 1) & is_digit);
    weight = 1 + ((2 * weight - 1) & is_digit);
    const uint8_t byte = list.take(symbol >> kPlaceShift & 255);
    counts[byte] += repeats;
    const uint64_t run = byte * uint64_t{0x0101010101010101};
    std::memcpy(last + size, &run, kShortRun);
    size += repeats;
    if (repeats <= kShortRun) return true;
    if (size > kMostBlockBytes) return false;
    std::memset(last + size - repeats + kShortRun, byte, repeats - kShortRun);
    return true;
  }
};

}  // namespace bertdata::bzip2
