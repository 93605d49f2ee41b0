// Decodes a compressed block of a bzip2 file. Twin: wiki/dump/bzip2.py, which uses Python's bz2.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "column.h"
#include "wiki/bzip2/bit_reader.h"
#include "wiki/bzip2/crc32.h"
#include "wiki/bzip2/huffman.h"
#include "wiki/bzip2/inverse_bwt.h"
#include "wiki/bzip2/marks.h"
#include "wiki/bzip2/run_lengths.h"
#include "wiki/bzip2/symbols.h"

namespace bertdata::bzip2 {

// Result of decoding a block.
enum class Outcome {
  kText,
  kTooLong,  // the text is longer than allowed
  kRefused,  // not a whole block, damaged, or randomised, which bzip2 has not written since 1997
};

// Decodes one block at a time. Reuses its memory, about 30 MB of address space of which usually a fifth is touched.
class BlockDecoder {
 public:
  BlockDecoder() : bytes_(new uint8_t[kMostBlockBytes + Symbols::kSlack]) {}

  // Decodes the block in bits `first` to `end` of the data, which include the magic number. Writes the text to `out`
  // if the result is kText.
  // most: largest allowed number of bytes in the text.
  Outcome decode(const uint8_t* data, size_t size, uint64_t first, uint64_t end, size_t most, Column<uint8_t>& out) {
    if (end > uint64_t{8} * size || end < first || end - first < 80) return Outcome::kRefused;
    BitReader reader(data, size, first);
    const uint64_t magic_begin = reader.take(24), magic_end = reader.take(24);
    const uint32_t checksum = reader.take(32);
    const bool is_randomised = reader.take(1);
    const uint32_t origin = reader.take(24);
    if ((magic_begin << 24 | magic_end) != kBlockMagic || is_randomised) return Outcome::kRefused;
    if (!read_bytes_in_use(reader) || !read_selectors(reader) || !read_codes(reader) || !read_symbols(reader) ||
        origin >= size_ || reader.position() != end)
      return Outcome::kRefused;
    // A block is the text after run-length encoding, Burrows-Wheeler transform, move-to-front and Huffman coding, so
    // the steps are undone in reverse order.
    transform_.run(bytes_.get(), size_, origin, counts_);
    out.truncate(0);
    if (!expand_runs(bytes_.get(), size_, most, out)) return Outcome::kTooLong;
    return crc32(out.data(), out.size()) == checksum ? Outcome::kText : Outcome::kRefused;
  }

 private:
  static constexpr unsigned kMostCodes = 6, kMostSelectors = 1 << 15;

  // Reads which byte values occur in the block, as a bitmap in two levels, and fills the move-to-front list with them.
  bool read_bytes_in_use(BitReader& reader) {
    const uint32_t rows = reader.take(16);
    used_ = 0;
    list_ = MoveToFront(rest_);
    for (unsigned row = 0; row < 16; ++row) {
      if (!(rows >> (15 - row) & 1)) continue;
      const uint32_t row_bits = reader.take(16);
      for (unsigned i = 0; i < 16; ++i)
        if (row_bits >> (15 - i) & 1) list_.set(used_++, static_cast<uint8_t>(16 * row + i));
    }
    return used_ > 0;
  }

  // Reads which code each group of fifty symbols uses. The codes' numbers are move-to-front coded in unary.
  bool read_selectors(BitReader& reader) {
    codes_in_use_ = reader.take(3);
    selector_count_ = reader.take(15);
    if (codes_in_use_ < 2 || codes_in_use_ > kMostCodes || !selector_count_) return false;
    uint8_t order[kMostCodes] = {0, 1, 2, 3, 4, 5};
    for (unsigned i = 0; i < selector_count_; ++i) {
      unsigned place = 0;
      while (reader.take(1))
        if (++place >= codes_in_use_) return false;
      const uint8_t code = order[place];
      for (; place; --place) order[place] = order[place - 1];
      selectors_[i] = order[0] = code;
    }
    return true;
  }

  // Reads the code lengths, each coded as a difference from the length before: 0 ends it, 10 adds one, 11 subtracts
  // one.
  bool read_codes(BitReader& reader) {
    const unsigned symbols = used_ + 2;
    for (unsigned c = 0; c < codes_in_use_; ++c) {
      uint8_t lengths[kMostSymbols];
      uint32_t length = reader.take(5);
      for (unsigned s = 0; s < symbols; ++s) {
        for (;;) {
          if (length < 1 || length > kLongestCode) return false;
          if (!reader.take(1)) break;
          if (reader.take(1)) --length; else ++length;
        }
        lengths[s] = static_cast<uint8_t>(length);
      }
      if (!codes_[c].build(lengths, symbols)) return false;
    }
    return true;
  }

  // Reads the symbols. Writes the transform's bytes to bytes_, their frequencies to counts_ and their number to size_.
  bool read_symbols(BitReader& from) {
    std::memset(counts_, 0, sizeof counts_);
    Symbols symbols{from, list_, bytes_.get(), counts_, 0, 1};
    for (unsigned group = 0; group < selector_count_; ++group) {
      const PrefixCode& code = codes_[selectors_[group]];
      // Far from the end of the data, the faster variant without bounds checks reads the group.
      const bool plenty = symbols.reader.has(Symbols::kGroup * kLongestCode / 8);
      const Symbol last = plenty ? symbols.read_group<true>(code) : symbols.read_group<false>(code);
      if (symbols.size > kMostBlockBytes || (last & kIsNone)) return false;
      if (!(last & kIsEnd)) continue;
      from = symbols.reader;
      size_ = symbols.size;
      return true;
    }
    return false;
  }

  unsigned used_ = 0, codes_in_use_ = 0, selector_count_ = 0;
  uint32_t size_ = 0;
  uint32_t counts_[256];
  uint8_t selectors_[kMostSelectors];
  uint64_t rest_[MoveToFront::kRestWords];
  MoveToFront list_{rest_};
  PrefixCode codes_[kMostCodes];
  InverseBwt transform_;
  std::unique_ptr<uint8_t[]> bytes_;  // first the bytes of the transform, then those of the text
};

}  // namespace bertdata::bzip2
