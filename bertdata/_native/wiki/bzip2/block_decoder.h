// One compressed block of a bzip2 file to its text. Twin: wiki/dump/bzip2.py, with Python's bz2.
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

enum class Outcome {
  kText,
  kTooLong,  // its text has more bytes than were allowed
  kRefused,  // no whole block, damaged, or randomised, which bzip2 has not written since 1997
};

// Keeps its memory, some 30 MB of which a fifth is touched as a rule, from block to block.
class BlockDecoder {
 public:
  BlockDecoder() : bytes_(new uint8_t[kMostBlockBytes + Symbols::kSlack]) {}

  // The block is the bits from first to end of the data, magic number included.
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
    transform_.run(bytes_.get(), size_, origin, counts_);
    out.truncate(0);
    if (!expand_runs(bytes_.get(), size_, most, out)) return Outcome::kTooLong;
    return crc32(out.data(), out.size()) == checksum ? Outcome::kText : Outcome::kRefused;
  }

 private:
  static constexpr unsigned kMostCodes = 6, kMostSelectors = 1 << 15;

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

  // The code of each group of fifty symbols.
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

  // The transform's bytes into bytes_, how often each occurs into counts_, their number into size_.
  bool read_symbols(BitReader& from) {
    std::memset(counts_, 0, sizeof counts_);
    Symbols symbols{from, list_, bytes_.get(), counts_, 0, 1};
    for (unsigned group = 0; group < selector_count_; ++group) {
      const PrefixCode& code = codes_[selectors_[group]];
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
  std::unique_ptr<uint8_t[]> bytes_;  // the transform's, then those of the text
};

}  // namespace bertdata::bzip2
