// Turns the symbols of a bzip2 block into the bytes of its Burrows-Wheeler transform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wiki/bzip2/bit_reader.h"
#include "wiki/bzip2/huffman.h"
#include "wiki/bzip2/inverse_bwt.h"
#include "wiki/bzip2/move_to_front.h"

namespace bertdata::bzip2 {

// State while reading a block's symbols. `last` has room for kMostBlockBytes + kSlack bytes. The size is checked after
// each group of symbols, so a group may write up to kSlack bytes too many.
struct Symbols {
  static constexpr unsigned kGroup = 50;
  static constexpr uint32_t kShortRun = 8;  // bytes that are written for every symbol, whether needed or not
  static constexpr size_t kSlack = kGroup * kShortRun;

  BitReader reader;
  MoveToFront list;
  uint8_t* last;
  uint32_t* counts;
  uint32_t size, weight;  // number of bytes written; value of the next digit of a run length

  // Reads a group of symbols that use the same code, up to its end or the block's end, and returns the last symbol.
  // Plenty: enough data follows to skip the bounds checks.
  template <bool Plenty>
  Symbol read_group(const PrefixCode& code) {
    Symbols now = *this;  // a local copy can stay in registers
    Symbol symbol = 0;
    for (unsigned i = 0; i < kGroup; i += 2) {
      Plenty ? now.reader.refill_quickly() : now.reader.refill();  // enough bits for two codes
      if (!now.add(symbol = code.find(now.reader.bits()))) break;
      if (!now.add(symbol = code.find(now.reader.bits()))) break;
    }
    *this = now;
    return symbol;
  }

  // Processes a symbol. Returns false at the block's end and for an invalid code.
  // A run length is a number with the digits 1 and 2, lowest first, each followed by the next digit or another symbol.
  // Each digit repeats the byte at the list's front `weight` or 2 * `weight` times.
  // digits 2 1 -> 2 + 2 * 1 = 4 repeats
  // All symbols take the same path, because a branch on the symbol would often be mispredicted: a digit is a run of
  // index 0.
  [[gnu::always_inline]] bool add(Symbol symbol) {
    reader.skip(symbol & 31);
    if (symbol & (kIsEnd | kIsNone)) return false;
    const uint32_t is_digit = static_cast<uint32_t>(static_cast<int32_t>(symbol) >> 31);  // all bits set or 0
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
