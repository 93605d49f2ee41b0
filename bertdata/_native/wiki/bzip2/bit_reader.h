// Bits of a byte array, the highest of each byte first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bertdata::bzip2 {

// Written so that compilers make one load of it.
inline uint64_t load_big_endian(const uint8_t* p) {
  return uint64_t{p[0]} << 56 | uint64_t{p[1]} << 48 | uint64_t{p[2]} << 40 | uint64_t{p[3]} << 32 |
         uint64_t{p[4]} << 24 | uint64_t{p[5]} << 16 | uint64_t{p[6]} << 8 | uint64_t{p[7]};
}

// Behind the end come zeros without end: position() tells a reader that it went too far.
class BitReader {
 public:
  BitReader(const uint8_t* data, size_t size, uint64_t bit)
      : data_(data), size_(size), next_(static_cast<size_t>(bit / 8)) {
    refill();
    skip(static_cast<unsigned>(bit % 8));
  }

  // True if so many bytes follow that refill_quickly can be called for each seven of them.
  bool has(size_t bytes) const { return next_ + bytes + 8 <= size_; }

  // At least 56 bits can then be taken.
  void refill_quickly() {
    bits_ |= load_big_endian(data_ + next_) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  void refill() {
    if (next_ + 8 <= size_) return refill_quickly();
    for (; count_ <= 56; count_ += 8, ++next_)
      if (next_ < size_) bits_ |= static_cast<uint64_t>(data_[next_]) << (56 - count_);
  }

  // The next bits, from the top.
  uint64_t bits() const { return bits_; }
  void skip(unsigned count) {
    bits_ <<= count;
    count_ -= count;
  }

  // 1 to 32 bits.
  uint32_t take(unsigned count) {
    refill();
    const uint32_t value = static_cast<uint32_t>(bits_ >> (64 - count));
    skip(count);
    return value;
  }

  // Bits of the array that were taken.
  uint64_t position() const { return uint64_t{8} * next_ - count_; }

 private:
  const uint8_t* data_;
  size_t size_, next_;
  uint64_t bits_ = 0;   // the next ones, from the top
  unsigned count_ = 0;  // of bits_
};

}  // namespace bertdata::bzip2
