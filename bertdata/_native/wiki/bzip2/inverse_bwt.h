// The text of a Burrows-Wheeler transform.
//
// The transform is undone by a walk through a permutation, each step a cache miss that waits for the one
// before. The walk is therefore begun at many rows at once, of which kLanes are under way; each goes on to
// the next row where another began. The pieces are then put together in their order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace bertdata::bzip2 {

constexpr uint32_t kMostBlockBytes = 900'000;

class InverseBwt {
 public:
  // Not initialised: most of it is never touched.
  InverseBwt() : rows_(new uint32_t[kMostBlockBytes + 1]), written_(new uint8_t[kLanes * kLaneBytes]) {}

  // Turns a transform into its text in place. origin: the row of the text. counts: of each byte.
  // size is 1 to kMostBlockBytes, origin < size.
  void run(uint8_t* bytes, uint32_t size, uint32_t origin, const uint32_t counts[256]) {
    size_ = size, origin_ = origin;
    link_rows(bytes, counts);
    mark_begins();
    walk();
    join(bytes);
  }

 private:
  static constexpr unsigned kLanes = 24;
  static constexpr uint32_t kPieceBytes = 512;              // on average
  static constexpr size_t kLaneBytes = (1 << 20) - 64 * 37;  // not a power of two: lanes share no cache set
  static constexpr uint32_t kBegin = uint32_t{1} << 31;
  static constexpr uint32_t kRow = (uint32_t{1} << 20) - 1;
  static_assert(kMostBlockBytes < kRow && kMostBlockBytes < kLaneBytes, "rows fit their bits, pieces a lane");

  struct Piece {
    const uint8_t* data;
    uint32_t size, next;
  };

  // Each row as its first byte, the row that follows it in the text (from bit 8), and kBegin.
  // Rows of a byte are filled from both ends: equal bytes in succession wait for one another's place.
  void link_rows(const uint8_t* last, const uint32_t counts[256]) {
    uint32_t begins[256], ends[256];
    uint32_t sum = 0;
    for (unsigned c = 0; c < 256; ++c) begins[c] = sum, ends[c] = sum += counts[c];
    uint32_t* const rows = rows_.get();
    const uint32_t size = size_;
    for (uint32_t i = 0, j = size - 1; i < j; ++i, --j) {
      rows[begins[last[i]]++] = i << 8 | last[i];
      rows[--ends[last[j]]] = j << 8 | last[j];
    }
    if (size & 1) rows[begins[last[size / 2]]] = size / 2 << 8 | last[size / 2];
    rows[size] = size << 8;  // where a lane waits that has nothing left
  }

  // Piece 0 begins at the origin, piece k + 1 at row k * kPieceBytes.
  uint32_t piece_at(uint32_t row) const { return row == origin_ ? 0 : row / kPieceBytes + 1; }
  uint32_t begin_of(uint32_t piece) const { return piece ? (piece - 1) * kPieceBytes : origin_; }

  void mark_begins() {
    const uint32_t pieces = (size_ - 1) / kPieceBytes + 2;
    pieces_.assign(pieces, Piece{nullptr, 0, 0});
    for (uint32_t piece = 0; piece < pieces; ++piece) rows_[begin_of(piece)] |= kBegin;
  }

  // Every lane takes a step in every round, so that one count tells how far each has written. A lane that
  // has work to the last round passes another row in each: there are at most size_ rounds.
  void walk() {
    const uint32_t* const rows = rows_.get();
    uint32_t row[kLanes], entries[kLanes];
    taken_ = at_work_ = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) row[lane] = size_, entries[lane] = begin_piece(lane, 0);
    for (uint32_t round = 0; at_work_; ++round) {
      uint32_t any = 0;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        lane_data(lane)[round] = static_cast<uint8_t>(entries[lane]);
        row[lane] = entries[lane] >> 8 & kRow;
        any |= entries[lane] = rows[row[lane]];
      }
      if (!(any & kBegin)) continue;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!(entries[lane] & kBegin)) continue;
        end_piece(lane, round + 1, row[lane]);
        entries[lane] = begin_piece(lane, round + 1);
      }
    }
  }

  // Gives the lane the next piece, if there is one. The entry of its first row.
  uint32_t begin_piece(unsigned lane, uint32_t round) {
    const uint32_t pieces = static_cast<uint32_t>(pieces_.size());
    if (taken_ && taken_ < pieces && begin_of(taken_) == origin_) ++taken_;  // it is piece 0
    if (taken_ == pieces) return rows_[size_];
    ++at_work_;
    piece_[lane] = taken_;
    begun_[lane] = round;
    return rows_[begin_of(taken_++)];
  }

  void end_piece(unsigned lane, uint32_t round, uint32_t next_row) {
    pieces_[piece_[lane]] = {lane_data(lane) + begun_[lane], round - begun_[lane], piece_at(next_row)};
    --at_work_;
  }

  uint8_t* lane_data(unsigned lane) { return written_.get() + size_t{lane} * kLaneBytes; }

  // A text that repeats itself goes round fewer rows than it has bytes.
  void join(uint8_t* text) const {
    uint32_t done = 0;
    for (uint32_t piece = 0; done < size_; piece = pieces_[piece].next) {
      const uint32_t size = std::min(pieces_[piece].size, size_ - done);
      std::memcpy(text + done, pieces_[piece].data, size);
      done += size;
    }
  }

  uint32_t size_ = 0, origin_ = 0;
  uint32_t taken_ = 0;               // pieces that were begun
  unsigned at_work_ = 0;             // lanes
  uint32_t piece_[kLanes], begun_[kLanes];  // of each lane: its piece, and the round in which it began
  std::unique_ptr<uint32_t[]> rows_;
  std::unique_ptr<uint8_t[]> written_;
  std::vector<Piece> pieces_;
};

}  // namespace bertdata::bzip2
