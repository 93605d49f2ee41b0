// A list of up to 256 bytes in which an item moves to the front when it is taken.
#pragma once

#include <cstdint>

namespace bertdata::bzip2 {

// The bits of the first and second word that change when one of their sixteen items is taken: all items up to that
// item.
struct MovedBits {
  uint64_t first, second;
};

constexpr uint64_t kAllMoved = ~uint64_t{0};
constexpr MovedBits kMovedBits[16] = {
    {0xFF, 0},
    {0xFFFF, 0},
    {0xFFFFFF, 0},
    {0xFFFFFFFF, 0},
    {0xFFFFFFFFFF, 0},
    {0xFFFFFFFFFFFF, 0},
    {0xFFFFFFFFFFFFFF, 0},
    {kAllMoved, 0},
    {kAllMoved, 0xFF},
    {kAllMoved, 0xFFFF},
    {kAllMoved, 0xFFFFFF},
    {kAllMoved, 0xFFFFFFFF},
    {kAllMoved, 0xFFFFFFFFFF},
    {kAllMoved, 0xFFFFFFFFFFFF},
    {kAllMoved, 0xFFFFFFFFFFFFFF},
    {kAllMoved, kAllMoved},
};

// The list has eight items per word, with the first in the lowest byte. Most taken items are in the first two words.
// These are separate variables, so that the compiler keeps them in registers. The other thirty words are the caller's
// array.
class MoveToFront {
 public:
  static constexpr unsigned kRestWords = 30;

  explicit MoveToFront(uint64_t* rest) : rest_(rest) {}

  // Sets an item. place: below 256.
  void set(unsigned place, uint8_t item) {
    uint64_t& word = place < 8 ? first_ : place < 16 ? second_ : rest_[place / 8 - 2];
    const unsigned shift = 8 * (place & 7);
    word = (word & ~(uint64_t{255} << shift)) | static_cast<uint64_t>(item) << shift;
  }

  // Takes an item and moves it to the front. place: below 256. Below 16 there is no branch that depends on `place`,
  // which the CPU would often mispredict.
  [[gnu::always_inline]] uint8_t take(unsigned place) {
    if (place >= 16) {
      const uint8_t item = take_from_rest(place - 16, static_cast<uint8_t>(second_ >> 56), rest_);
      second_ = second_ << 8 | first_ >> 56;
      first_ = first_ << 8 | item;
      return item;
    }
    const MovedBits moved = kMovedBits[place];
    const uint64_t in_second = uint64_t{0} - (place >> 3);  // all bits set if the item is in the second word
    const uint64_t word = first_ ^ ((first_ ^ second_) & in_second);
    const uint64_t item = word >> (8 * place & 63) & 255;
    // Shift the items before the taken item by one place, and put the item first.
    second_ ^= (second_ ^ (second_ << 8 | first_ >> 56)) & moved.second;
    first_ = (first_ ^ ((first_ ^ first_ << 8) & moved.first)) | item;
    return static_cast<uint8_t>(item);
  }

 private:
  // Takes an item out of the rest and puts another item in front of the rest.
  static uint8_t take_from_rest(unsigned place, uint8_t front, uint64_t* rest) {
    unsigned w = place / 8;
    const uint64_t word = rest[w], moved = kMovedBits[place & 7].first;
    const uint64_t item = word >> 8 * (place & 7) & 255;
    rest[w] = (word & ~moved) | (word << 8 & moved);
    for (; w; --w) {
      rest[w] |= rest[w - 1] >> 56;
      rest[w - 1] <<= 8;
    }
    rest[0] |= front;
    return static_cast<uint8_t>(item);
  }

  uint64_t first_ = 0, second_ = 0;
  uint64_t* rest_;
};

}  // namespace bertdata::bzip2
