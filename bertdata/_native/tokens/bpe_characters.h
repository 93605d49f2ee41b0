// Character classes of the byte-level BPE patterns. Twin of the classes in tokens/bpe/pretokens.py.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "unicode/unicode.h"

namespace bertdata {

// Classes of a character, named by the part of the pattern that tests them.
enum CharacterBits : uint8_t {
  kLetterBit = 1,    // \p{L}
  kNumberBit = 2,    // \p{N}
  kSpaceBit = 4,     // \s
  kWordBit = 8,      // \w, tested next to an added token
  kNumericBit = 16,  // numbers for the step that splits off digits (BpeDigits)
  // At most one of these three bits is set in a character.
  kKindMask = kLetterBit | kNumberBit | kSpaceBit,
};

// The classes of every code point.
class CharacterBitsTable {
 public:
  CharacterBitsTable(const uint8_t* bits, size_t count) : bits_(bits, bits + count) {
    if (count != kCodePoints) throw std::invalid_argument("characters: expected a byte for each code point");
    for (const uint8_t of : bits_)
      if (of & kKindMask & ((of & kKindMask) - 1)) throw std::invalid_argument("characters: one is of two kinds");
  }

  // Returns the bits of the character at p, in valid UTF-8, and moves p past the character.
  uint8_t next(const uint8_t*& p, const uint8_t* end) const {
    return *p < 0x80 ? bits_[*p++] : bits_[decode_utf8(p, end)];
  }
  uint8_t ascii(uint8_t c) const { return bits_[c]; }

  // Returns the bits of the character that ends at p. There must be a character before p.
  uint8_t before(const uint8_t* p) const {
    const uint8_t* const end = p;
    do --p;
    while ((*p & 0xC0) == 0x80);
    return next(p, end);
  }

 private:
  std::vector<uint8_t> bits_;
};

}  // namespace bertdata
