// ModernBERT's packer and masks. Twin of loaders/modernbert/packer.py and loaders/modernbert/masks.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "column.h"
#include "examples/pcg64.h"

namespace bertdata {

// Batches of rows of up to `width` cells, of sequences with lengths of at most `width`.
class ModernBertPacker {
 public:
  struct Rows {
    Column<uint32_t> places, ends;  // the sequences row after row; behind each row's
  };

  ModernBertPacker(std::vector<uint32_t> lengths, size_t batch_size, size_t buffer_size, uint32_t width)
      : lengths_(std::move(lengths)), batch_size_(batch_size), buffer_size_(buffer_size), width_(width) {
    for (const uint32_t length : lengths_)
      if (length > width) throw std::invalid_argument("lengths: a sequence is longer than a row");
  }

  size_t taken() const { return taken_; }
  const std::deque<uint32_t>& waiting() const { return buffer_; }

  void restore(size_t taken, const std::vector<uint32_t>& waiting) {
    if (taken > lengths_.size()) throw std::invalid_argument("state: more sequences taken than there are");
    for (const uint32_t place : waiting)
      if (place >= lengths_.size()) throw std::invalid_argument("state: names a sequence that is not there");
    taken_ = taken;
    buffer_.assign(waiting.begin(), waiting.end());
  }

  // False where a row would be empty: the epoch has ended.
  bool pack(size_t rows, Rows& out) {
    std::vector<uint32_t> room(rows, width_);
    std::vector<std::vector<uint32_t>> held(rows);
    std::vector<uint32_t> skipped;
    while (!buffer_.empty() || fill(skipped.size())) {
      const uint32_t place = buffer_.front(), length = lengths_[place];
      buffer_.pop_front();
      size_t best = rows;
      uint32_t least = UINT32_MAX;
      for (size_t row = 0; row < rows; ++row)
        if (room[row] >= length && room[row] < least) least = room[best = row];
      if (best == rows) {
        skipped.push_back(place);
        continue;
      }
      held[best].push_back(place);
      room[best] -= length;
    }
    buffer_.insert(buffer_.begin(), skipped.rbegin(), skipped.rend());
    uint32_t end = 0;
    for (const std::vector<uint32_t>& own : held) {
      if (own.empty()) return false;
      for (const uint32_t place : own) out.places.push(place);
      out.ends.push(end += static_cast<uint32_t>(own.size()));
    }
    return true;
  }

 private:
  // Reads whole source batches while the empty buffer has room. True where that made it hold some.
  bool fill(size_t skipped) {
    size_t added = 0;
    while (taken_ < lengths_.size() && buffer_size_ > buffer_.size() + batch_size_ &&
           added + batch_size_ + skipped <= buffer_size_) {
      const size_t end = std::min(taken_ + batch_size_, lengths_.size());
      for (; taken_ < end; ++taken_)
        if (lengths_[taken_]) {
          buffer_.push_back(static_cast<uint32_t>(taken_));
          ++added;
        }
    }
    return added > 0;
  }

  std::vector<uint32_t> lengths_;
  size_t batch_size_, buffer_size_;
  uint32_t width_;
  size_t taken_ = 0;
  std::deque<uint32_t> buffer_;
};

// A batch of rows of cells, row after row: R * W each.
struct ModernBertCells {
  int64_t *ids, *labels, *attention;
};

struct ModernBertRule {
  double mask_prob;
  int64_t mask_id, padding_id;
};

constexpr int64_t kIgnored = -100;

// The ids of rows in rows of `width` cells, the rest padding. row_ends: behind each row's ids; they ascend, and
// no row has more than `width`.
template <class Id>
void fill_rows(const Id* ids, const int64_t* row_ends, size_t rows, size_t width, int64_t padding_id, int64_t* cells) {
  int64_t start = 0;
  for (size_t row = 0; row < rows; ++row, cells += width) {
    std::copy(ids + start, ids + row_ends[row], cells);
    std::fill(cells + (row_ends[row] - start), cells + width, padding_id);
    start = row_ends[row];
  }
}

// Masks the cells in `out.ids`, and returns how many integers were drawn anew. The stream stays as it was where
// an id is too large.
inline int64_t mask_cells(PcgStream& shared, const ModernBertRule& rule, size_t count, const ModernBertCells& out) {
  PcgStream stream = shared;
  const double masked = 0.8 * rule.mask_prob, replaced = 0.9 * rule.mask_prob;
  std::vector<size_t> random;
  int64_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double draw = stream.random();
    const int64_t id = out.ids[i];
    const bool padding = id == rule.padding_id;
    const int64_t now = draw < masked ? rule.mask_id : id;
    if (draw >= masked && draw < replaced) random.push_back(i);
    out.ids[i] = now;
    largest = std::max(largest, now);
    out.labels[i] = draw < rule.mask_prob && !padding ? id : kIgnored;
    out.attention[i] = !padding;
  }
  if (largest >= UINT32_MAX) throw std::invalid_argument("ids: expected less than 4294967295");
  const uint32_t limit = static_cast<uint32_t>(largest) + 1;
  const uint32_t least = (0u - limit) % limit;  // smaller low halves would not be uniform: Lemire's rejection
  int64_t redrawn = 0;
  size_t next = 0;
  random.push_back(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t product = 0;
    if (limit > 1) product = static_cast<uint64_t>(stream.next()) * limit;
    for (; static_cast<uint32_t>(product) < least; ++redrawn) product = static_cast<uint64_t>(stream.next()) * limit;
    if (i == random[next]) {
      out.ids[i] = static_cast<int64_t>(product >> 32);
      ++next;
    }
  }
  shared = stream;
  return limit > 1 ? redrawn : -static_cast<int64_t>(count);
}

}  // namespace bertdata
