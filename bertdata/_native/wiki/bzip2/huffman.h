// Huffman codes of a bzip2 block: at most 258 symbols, canonical codes of 1 to 20 bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "wiki/bzip2/bit_reader.h"

namespace bertdata::bzip2 {

constexpr unsigned kLongestCode = 20;
constexpr unsigned kMostSymbols = 258;

// A symbol in the form that the decoder needs. The lowest five bits are the length of its code. The other bits follow.
using Symbol = uint32_t;
constexpr Symbol kIsDigit = 1u << 31;  // a digit of a run length; its value is 2 if kIsTwo is set, else 1
constexpr Symbol kIsTwo = 1u << 5;
constexpr Symbol kIsEnd = 1u << 16;    // end of the block
constexpr Symbol kIsNone = 1u << 17;   // the bits are not a valid code
constexpr unsigned kPlaceShift = 8;    // eight bits: index in the move-to-front list of the next byte

// Converts a symbol's number: 0 and 1 are digits of run lengths, the last is the end, and n is list index n - 1.
inline Symbol as_symbol(unsigned number, unsigned symbols) {
  if (number <= 1) return kIsDigit | number * kIsTwo;
  return number == symbols - 1 ? kIsEnd : (number - 1) << kPlaceShift;
}

// A canonical code: codes ascend with their length, then with the symbol's number. Codes of up to 10 bits are decoded
// by a table, longer codes by comparison with the end of each length's range.
class PrefixCode {
 public:
  // Builds the code from the code length of each symbol, `symbols` (3 to kMostSymbols) of them. Returns false if the
  // lengths leave no room for all codes.
  bool build(const uint8_t* lengths, unsigned symbols) {
    uint32_t counts[kLongestCode + 1] = {};
    for (unsigned s = 0; s < symbols; ++s) ++counts[lengths[s]];
    uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= kLongestCode; ++length) {
      // The first code of a length is the end of the range of the shorter length, times two.
      // lengths 1 2 3 3 -> codes 0 10 110 111
      code <<= 1;
      first_[length] = static_cast<int32_t>(index) - static_cast<int32_t>(code);
      code += counts[length];
      index += counts[length];
      if (code > uint32_t{1} << length) return false;
      limits_[length] = code << (kLongestCode - length);
    }
    sort_symbols(lengths, symbols, counts);
    fill_short(symbols);
    return true;
  }

  // Returns the symbol whose code the bits begin with, from the top bit on. At least 20 bits must be valid.
  Symbol find(uint64_t bits) const {
    const Symbol symbol = short_[bits >> (64 - kShortBits)];
    return symbol ? symbol : find_long(static_cast<uint32_t>(bits >> (64 - kLongestCode)));
  }

 private:
  static constexpr unsigned kShortBits = 10;

  Symbol find_long(uint32_t bits) const {
    for (unsigned length = kShortBits + 1; length <= kLongestCode; ++length)
      if (bits < limits_[length])
        return symbols_[first_[length] + static_cast<int32_t>(bits >> (kLongestCode - length))];
    return kIsNone;
  }

  void sort_symbols(const uint8_t* lengths, unsigned symbols, const uint32_t* counts) {
    uint32_t places[kLongestCode + 2] = {};
    for (unsigned length = 1; length <= kLongestCode; ++length) places[length + 1] = places[length] + counts[length];
    for (unsigned s = 0; s < symbols; ++s) symbols_[places[lengths[s]]++] = as_symbol(s, symbols) | lengths[s];
  }

  // Fills the table that maps any ten bits to the symbol whose code they begin with, or to 0 if the code is longer or
  // invalid.
  void fill_short(unsigned symbols) {
    uint32_t row = 0;
    for (unsigned i = 0; i < symbols && (symbols_[i] & 31) <= kShortBits; ++i)
      for (uint32_t end = row + (uint32_t{1} << (kShortBits - (symbols_[i] & 31))); row < end; ++row)
        short_[row] = symbols_[i];
    std::memset(short_ + row, 0, ((1u << kShortBits) - row) * sizeof(Symbol));
  }

  Symbol short_[1 << kShortBits];
  uint32_t limits_[kLongestCode + 1];  // end of the codes of up to this length, shifted to 20 bits
  int32_t first_[kLongestCode + 1];    // for codes of this length: index in symbols_ minus code
  Symbol symbols_[kMostSymbols];       // sorted by code length, then by number
};

}  // namespace bertdata::bzip2
