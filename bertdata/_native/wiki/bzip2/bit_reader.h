// Reads bits of a byte array, from the highest bit of each byte on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bertdata::bzip2 {

// Compilers turn this expression into a single load.
inline uint64_t load_big_endian(const uint8_t* p) {
  return uint64_t{p[0]} << 56 | uint64_t{p[1]} << 48 | uint64_t{p[2]} << 40 | uint64_t{p[3]} << 32 |
         uint64_t{p[4]} << 24 | uint64_t{p[5]} << 16 | uint64_t{p[6]} << 8 | uint64_t{p[7]};
}

// Reads bits. After the end of the data it returns zeros forever. A caller finds out with position() that it read too
// far.
class BitReader {
 public:
  BitReader(const uint8_t* data, size_t size, uint64_t bit)
      : data_(data), size_(size), next_(static_cast<size_t>(bit / 8)) {
    refill();
    skip(static_cast<unsigned>(bit % 8));
  }

  // Returns whether `bytes` more bytes can be read with refill_quickly(), which reads up to 8 bytes ahead.
  bool has(size_t bytes) const { return next_ + bytes + 8 <= size_; }

  // Loads bits, so that at least 56 can be taken. Eight bytes must be readable.
  void refill_quickly() {
    // Bytes that are only partly used are loaded again by the next call. The overlapping bits are equal, so OR does no
    // harm.
    bits_ |= load_big_endian(data_ + next_) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  void refill() {
    if (next_ + 8 <= size_) return refill_quickly();
    for (; count_ <= 56; count_ += 8, ++next_)
      if (next_ < size_) bits_ |= static_cast<uint64_t>(data_[next_]) << (56 - count_);
  }

  // Returns the next bits, from the top bit on.
  uint64_t bits() const { return bits_; }
  void skip(unsigned count) {
    bits_ <<= count;
    count_ -= count;
  }

  // Takes 1 to 32 bits.
  uint32_t take(unsigned count) {
    refill();
    const uint32_t value = static_cast<uint32_t>(bits_ >> (64 - count));
    skip(count);
    return value;
  }

  // Returns the number of bits of the array before the next bit.
  uint64_t position() const { return uint64_t{8} * next_ - count_; }

 private:
  const uint8_t* data_;
  size_t size_, next_;
  uint64_t bits_ = 0;   // the next bits, from the top
  unsigned count_ = 0;  // number of valid bits in bits_
};

}  // namespace bertdata::bzip2
