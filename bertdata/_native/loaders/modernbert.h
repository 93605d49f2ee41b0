// ModernBERT's sequence packer and masks. Twin of loaders/modernbert/packer.py and loaders/modernbert/masks.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "column.h"
#include "examples/pcg64.h"

namespace bertdata {

// Packs sequences of at most `width` ids into batches of rows of `width` cells, by the greedy best fit of ModernBERT's
// original packer.
class ModernBertPacker {
 public:
  // The sequences of a batch.
  struct Rows {
    Column<uint32_t> places, ends;  // sequence numbers, row after row; end offset of each row in places
  };

  ModernBertPacker(std::vector<uint32_t> lengths, size_t batch_size, size_t buffer_size, uint32_t width)
      : lengths_(std::move(lengths)), batch_size_(batch_size), buffer_size_(buffer_size), width_(width) {
    for (const uint32_t length : lengths_)
      if (length > width) throw std::invalid_argument("lengths: a sequence is longer than a row");
  }

  size_t taken() const { return taken_; }
  const std::deque<uint32_t>& waiting() const { return buffer_; }

  // Restores a state that taken() and waiting() returned. Throws std::invalid_argument if the state does not fit.
  void restore(size_t taken, const std::vector<uint32_t>& waiting) {
    if (taken > lengths_.size()) throw std::invalid_argument("state: more sequences taken than there are");
    for (const uint32_t place : waiting)
      if (place >= lengths_.size()) throw std::invalid_argument("state: names a sequence that is not there");
    taken_ = taken;
    buffer_.assign(waiting.begin(), waiting.end());
  }

  // Packs the next batch of `rows` rows. Returns false at the end of the epoch, that is, when a row would be empty.
  bool pack(size_t rows, Rows& out) {
    std::vector<uint32_t> room(rows, width_);
    std::vector<std::vector<uint32_t>> held(rows);
    std::vector<uint32_t> skipped;
    while (!buffer_.empty() || fill(skipped.size())) {
      const uint32_t place = buffer_.front(), length = lengths_[place];
      buffer_.pop_front();
      // Best fit: the row with the least room that still holds the sequence, the first such row on a tie.
      // room [10, 4, 6], length 4 -> row 1
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
    // Sequences that fit no row come first in the next batch, in reversed order as in the original.
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
  // Refills the empty buffer in whole source batches while there is room. Empty sequences are dropped. Returns whether
  // sequences were added. `skipped` sequences count as buffered, because they go back into the buffer.
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

// Output cells of a batch, row after row: rows * width cells in each array.
struct ModernBertCells {
  int64_t *ids, *labels, *attention;
};

// mask_prob: share of target cells. Of the targets 80 % become mask_id, 10 % a random id, and 10 % keep their id.
struct ModernBertRule {
  double mask_prob;
  int64_t mask_id, padding_id;
};

constexpr int64_t kIgnored = -100;

// The masking shares as integer limits. A draw is the top 53 bits of an output, and comparing integers gives the same
// result as comparing the draw divided by 2**53 with the share.
class ShareLimits {
 public:
  explicit ShareLimits(double mask_prob)
      : masked(limit(0.8 * mask_prob)), replaced(limit(0.9 * mask_prob)), target(limit(mask_prob)) {}

  // A draw below `masked` gives mask_id, from there to `replaced` a random id. Below `target` the cell has a label.
  const int64_t masked, replaced, target;

 private:
  static int64_t limit(double share) { return static_cast<int64_t>(std::ceil(share * 9007199254740992.0)); }
};

// Writes [MASK], labels and attention for `count` cells according to their draws. Random ids follow later
// (set_random_ids). Returns the largest id in the chunk.
// real: increased by the number of cells that are not padding.
BERTDATA_VECTOR_CLONES inline int64_t mask_chunk(const uint64_t* __restrict draws, size_t count, int64_t masked,
                                                 int64_t target, int64_t mask_id, int64_t padding_id,
                                                 int64_t* __restrict ids, int64_t* __restrict labels,
                                                 int64_t* __restrict attention, int64_t& real) {
  int64_t largest = 0, found = 0;
  for (size_t i = 0; i < count; ++i) {
    // No branches, so that the compiler can vectorise the loop.
    const int64_t draw = static_cast<int64_t>(draws[i] >> 11), id = ids[i], now = draw < masked ? mask_id : id;
    const int64_t is_real = id != padding_id;
    ids[i] = now;
    attention[i] = is_real;
    found += is_real;
    labels[i] = (draw < target) & is_real ? id : kIgnored;
    largest = now > largest ? now : largest;
  }
  real += found;
  return largest;
}

// Returns whether Lemire's method would reject any of the words, that is, the low half of word * limit is below
// `least`.
BERTDATA_VECTOR_CLONES inline bool any_redrawn(const uint32_t* words, size_t count, uint32_t limit, uint32_t least) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) found |= words[i] * limit < least;
  return found != 0;
}

// Masks a batch of rows in chunks that stay in the L1 cache. Works on a copy of the stream and writes it back at the
// end, so that an error leaves the stream as it was.
class ModernBertMasking {
 public:
  ModernBertMasking(PcgStream& stream, const ModernBertRule& rule, const ModernBertCells& out)
      : shared_(stream), stream_(stream), rule_(rule), limits_(rule.mask_prob), out_(out) {}

  // Fills the cells of `rows` rows of `width` cells: ids, then padding. Returns the number of rejected draws, from
  // which the caller knows how far the stream has advanced. After the call real() is the number of cells without
  // padding.
  // row_ends: end offset of each row in `ids`, ascending, at most `width` ids in a row.
  // Throws std::invalid_argument if an id is too large. The stream then stays as it was.
  template <class Id>
  int64_t mask(const Id* ids, const int64_t* row_ends, size_t rows, size_t width) {
    int64_t start = 0;
    for (size_t row = 0; row < rows; ++row) {
      int64_t* cells = out_.ids + row * width;
      std::copy(ids + start, ids + row_ends[row], cells);
      std::fill(cells + (row_ends[row] - start), cells + width, rule_.padding_id);
      start = row_ends[row];
      for (size_t at = 0; at < width; at += kChunk) set_masks(row * width + at, std::min(kChunk, width - at));
    }
    // The original takes the range of random ids from the batch, not from the vocabulary, and after masking. So all
    // masks must be set before the first random id is drawn.
    if (largest_ >= UINT32_MAX) throw std::invalid_argument("ids: expected less than 4294967295");
    const int64_t redrawn = set_random_ids(rows * width, static_cast<uint32_t>(largest_) + 1);
    shared_ = stream_;
    return redrawn;
  }

  int64_t real() const { return real_; }

 private:
  static constexpr size_t kChunk = 1024;

  void draw_outputs(size_t count) {
    PcgStream stream = stream_;  // a local copy can stay in registers
    for (size_t i = 0; i < count; ++i) outputs_[i] = stream.next_long();
    stream_ = stream;
  }

  void set_masks(size_t first, size_t count) {
    draw_outputs(count);
    largest_ = std::max(largest_, mask_chunk(outputs_, count, limits_.masked, limits_.target, rule_.mask_id,
                                             rule_.padding_id, out_.ids + first, out_.labels + first,
                                             out_.attention + first, real_));
    // Remember the cells that get a random id. The write is unconditional and the increment is 0 or 1, so there is no
    // branch that the CPU could mispredict.
    size_t* next = random_.room(count);
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t draw = static_cast<int64_t>(outputs_[i] >> 11);
      next[found] = first + i;
      found += (draw >= limits_.masked) & (draw < limits_.replaced);
    }
    random_.added(found);
  }

  // Draws an integer below `limit` for every cell, and writes it to the cells that get a random id. The integers of
  // all other cells are drawn and dropped, as in the original, to keep the stream in step. Returns the number of
  // rejected draws.
  int64_t set_random_ids(size_t count, uint32_t limit) {
    // All ids are 0, and nothing is drawn. The caller counts a draw per cell, which minus one per cell cancels.
    if (limit == 1) return -static_cast<int64_t>(count);
    const uint32_t least = (0u - limit) % limit;  // Lemire's rejection, 2^32 mod limit
    int64_t redrawn = 0;
    const size_t* next = random_.data();
    const size_t* last = next + random_.size();
    const auto take = [&](size_t cell, uint32_t word) {
      if (next == last || *next != cell) return;
      out_.ids[cell] = static_cast<int64_t>(static_cast<uint64_t>(word) * limit >> 32);
      ++next;
    };
    uint32_t words[kChunk];
    for (size_t at = 0; at < count;) {
      // Fast path: draw a whole chunk, two 32-bit words per output, low half first. It needs an even number of words
      // and no half kept from the previous output.
      const size_t size = std::min(kChunk, (count - at) & ~size_t{1});
      const PcgStream before = stream_;
      if (size && !stream_.state().has_half) {
        draw_outputs(size / 2);
        for (size_t i = 0; i < size / 2; ++i) {
          words[2 * i] = static_cast<uint32_t>(outputs_[i]);
          words[2 * i + 1] = static_cast<uint32_t>(outputs_[i] >> 32);
        }
        // Without rejections word i belongs to cell at + i, so only the listed cells are looked at.
        if (!any_redrawn(words, size, limit, least)) {
          while (next != last && *next < at + size) take(*next, words[*next - at]);
          at += size;
          continue;
        }
        // Some word is rejected, which shifts all later words. Go back and draw this chunk word by word.
        stream_ = before;
      }
      // Draw a single cell if that uses up the kept half, so that the fast path can go on with the next cell.
      for (size_t end = at + (stream_.state().has_half || !size ? 1 : size); at < end; ++at) {
        uint32_t word = stream_.next();
        for (; word * limit < least; ++redrawn) word = stream_.next();
        take(at, word);
      }
    }
    return redrawn;
  }

  PcgStream& shared_;
  PcgStream stream_;
  const ModernBertRule& rule_;
  const ShareLimits limits_;
  const ModernBertCells& out_;
  Column<size_t> random_;  // indices of the cells that get random ids
  int64_t largest_ = 0, real_ = 0;
  uint64_t outputs_[kChunk];
};

// Copies the selected sequences one after another, at most `most` ids of each. The caller has checked bounds and
// numbers.
template <class Id>
Column<Id> taken_sequences(const Id* ids, const int64_t* bounds, const int64_t* numbers, size_t count, int64_t most) {
  Column<Id> out;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i)
    total += static_cast<size_t>(std::min(most, bounds[numbers[i] + 1] - bounds[numbers[i]]));
  Id* next = out.room(total);
  for (size_t i = 0; i < count; ++i) {
    const Id* start = ids + bounds[numbers[i]];
    next = std::copy(start, start + std::min(most, bounds[numbers[i] + 1] - bounds[numbers[i]]), next);
  }
  out.added(total);
  return out;
}

}  // namespace bertdata
