// Inverts the Burrows-Wheeler transform.
//
// The text is found by walking through a permutation. Each step is a cache miss, and its result is the address of the
// next step. So the walk starts at many rows, kLanes of them at a time, to have many misses in flight. Each piece ends
// at the row where another piece starts, and the pieces are then joined in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace bertdata::bzip2 {

constexpr uint32_t kMostBlockBytes = 900'000;

// Inverts transforms of up to kMostBlockBytes bytes. The buffers are reused for the next block.
class InverseBwt {
 public:
  // The memory is not initialised, because most of it is never touched.
  InverseBwt() : rows_(new uint32_t[kMostBlockBytes + 1]), written_(new uint8_t[kLanes * kLaneBytes]) {}

  // Replaces a transform by its text, in place.
  // size: 1 to kMostBlockBytes. origin: the row where the text starts, below size. counts: frequency of each byte.
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
  // Not a power of two, so that the lanes do not compete for the same cache sets.
  static constexpr size_t kLaneBytes = (1 << 20) - 64 * 37;
  static constexpr uint32_t kBegin = uint32_t{1} << 31;
  static constexpr uint32_t kRow = (uint32_t{1} << 20) - 1;
  static_assert(kMostBlockBytes < kRow && kMostBlockBytes < kLaneBytes, "rows fit their bits, pieces a lane");

  // The bytes of a piece, and the piece that follows it in the text.
  struct Piece {
    const uint8_t* data;
    uint32_t size, next;
  };

  // Fills rows_. An entry has the row's first byte in bits 0-7, the row of the next byte of the text in bits 8-27, and
  // kBegin.
  // Rows that start with the same byte are filled from both ends. In one direction, runs of equal bytes would wait for
  // each other's update of begins[].
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
    rows[size] = size << 8;  // idle lanes stay at this row
  }

  // Piece 0 begins at the origin, and piece k + 1 at row k * kPieceBytes.
  uint32_t piece_at(uint32_t row) const { return row == origin_ ? 0 : row / kPieceBytes + 1; }
  uint32_t begin_of(uint32_t piece) const { return piece ? (piece - 1) * kPieceBytes : origin_; }

  // Sets kBegin at the first row of every piece. A walk that meets kBegin has reached the next piece.
  void mark_begins() {
    const uint32_t pieces = (size_ - 1) / kPieceBytes + 2;
    pieces_.assign(pieces, Piece{nullptr, 0, 0});
    for (uint32_t piece = 0; piece < pieces; ++piece) rows_[begin_of(piece)] |= kBegin;
  }

  // Walks all pieces. In every round each lane writes a byte and takes a step, so the round is the write offset of all
  // lanes. A lane with work passes a different row in each round, so there are at most size_ rounds.
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
      // Most rounds reach no piece's start. A single test for all lanes keeps the loop short.
      if (!(any & kBegin)) continue;
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        if (!(entries[lane] & kBegin)) continue;
        end_piece(lane, round + 1, row[lane]);
        entries[lane] = begin_piece(lane, round + 1);
      }
    }
  }

  // Gives the lane the next piece, if there is one, and returns the entry of its first row.
  uint32_t begin_piece(unsigned lane, uint32_t round) {
    const uint32_t pieces = static_cast<uint32_t>(pieces_.size());
    // The origin can also be a multiple of kPieceBytes. Its piece is piece 0 and must not be walked twice.
    if (taken_ && taken_ < pieces && begin_of(taken_) == origin_) ++taken_;
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

  // Joins the pieces in the order of the text. If the text is periodic, the walk is a cycle with fewer rows than the
  // text has bytes, and pieces are used repeatedly.
  void join(uint8_t* text) const {
    uint32_t done = 0;
    for (uint32_t piece = 0; done < size_; piece = pieces_[piece].next) {
      const uint32_t size = std::min(pieces_[piece].size, size_ - done);
      std::memcpy(text + done, pieces_[piece].data, size);
      done += size;
    }
  }

  uint32_t size_ = 0, origin_ = 0;
  uint32_t taken_ = 0;               // number of pieces begun
  unsigned at_work_ = 0;             // number of lanes at work
  uint32_t piece_[kLanes], begun_[kLanes];  // for each lane: its piece, and the round in which the piece began
  std::unique_ptr<uint32_t[]> rows_;
  std::unique_ptr<uint8_t[]> written_;
  std::vector<Piece> pieces_;
};

}  // namespace bertdata::bzip2
