// A bzip2 block's prefix codes: at most 258 symbols, codes of 1 to 20 bits, canonical.
#pragma once

#include <cstdint>
#include <cstring>

#include "wiki/bzip2/bit_reader.h"

namespace bertdata::bzip2 {

constexpr unsigned kLongestCode = 20;
constexpr unsigned kMostSymbols = 258;

// A symbol as the decoder of a block wants it: the length of its code in the lowest five bits, then these.
using Symbol = uint32_t;
constexpr Symbol kIsDigit = 1u << 31;  // of a run's length, counted twice where kIsTwo is set
constexpr Symbol kIsTwo = 1u << 5;
constexpr Symbol kIsEnd = 1u << 16;    // of the block
constexpr Symbol kIsNone = 1u << 17;   // the bits begin no code
constexpr unsigned kPlaceShift = 8;    // eight bits: the place in the list of the byte that is next

inline Symbol as_symbol(unsigned number, unsigned symbols) {
  if (number <= 1) return kIsDigit | number * kIsTwo;
  return number == symbols - 1 ? kIsEnd : (number - 1) << kPlaceShift;
}

class PrefixCode {
 public:
  // symbols: 3 to kMostSymbols. Codes ascend with length, then symbol. False where the lengths leave no room for
  // all codes.
  bool build(const uint8_t* lengths, unsigned symbols) {
    uint32_t counts[kLongestCode + 1] = {};
    for (unsigned s = 0; s < symbols; ++s) ++counts[lengths[s]];
    uint32_t code = 0, index = 0;
    for (unsigned length = 1; length <= kLongestCode; ++length) {
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

  // The symbol that these bits begin with, the highest first. At least 20 of them count.
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

  // The symbol whose code each row of ten bits begins with. 0 for a longer code or none.
  void fill_short(unsigned symbols) {
    uint32_t row = 0;
    for (unsigned i = 0; i < symbols && (symbols_[i] & 31) <= kShortBits; ++i)
      for (uint32_t end = row + (uint32_t{1} << (kShortBits - (symbols_[i] & 31))); row < end; ++row)
        short_[row] = symbols_[i];
    std::memset(short_ + row, 0, ((1u << kShortBits) - row) * sizeof(Symbol));
  }

  Symbol short_[1 << kShortBits];
  uint32_t limits_[kLongestCode + 1];  // the codes of this length and shorter ones end here, as 20 bits
  int32_t first_[kLongestCode + 1];    // place in symbols_ less code, for codes of this length
  Symbol symbols_[kMostSymbols];       // by length, then number
};

}  // namespace bertdata::bzip2
