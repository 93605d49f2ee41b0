// Chooses the spans of a block and replaces their ids. Twin of examples/span/masking.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bertdata {

// Settings of spans, prepared for drawing.
struct SpanRules {
  // most: largest number of masked ids in a block. shortest: words in the shortest span.
  uint32_t most, shortest;
  // Cumulative distribution of the span's length in words, from `shortest` on. The last value is 1.
  std::vector<double> lengths;
  // A uniform draw below mask_limit writes [MASK]. A draw from there to random_limit writes a random id. Otherwise the
  // original id stays.
  double mask_limit, random_limit;
  // by_id: draw the replacement for every id instead of once per span. are_external: a span's boundaries are the ids
  // next to it instead of its first and last id.
  bool by_id, are_external;
  uint32_t mask;
};

// The ids that random replacements are drawn from.
template <class Id>
struct IdPool {
  const Id* ids;
  uint32_t size;
};

// Masks one block at a time. The buffers are reused for the next block.
class SpanMasker {
 public:
  explicit SpanMasker(const SpanRules& rules) : rules_(rules) {}

  // Masks 1 to 65535 ids in place and returns the number of masked ids.
  // starts: 1 for each id that starts a word, else 0.
  // positions, labels: output, room for rules.most entries each: the masked positions, ascending, and their original
  // ids.
  template <class Id, class Position, class Stream>
  uint32_t mask(Id* ids, const uint8_t* starts, uint32_t size, double rate, const IdPool<Id>& pool, Stream& stream,
                Position* positions, Id* labels) {
    const double share = std::ceil(size * rate);
    draw(starts, size, share < rules_.most ? static_cast<uint32_t>(share) : rules_.most, stream);
    uint32_t count = 0;
    double drawn = 0;
    for (uint32_t position = 0; position < size; ++position) {
      if (!is_masked_[position]) continue;
      // One draw decides for the whole span. With by_id a second draw for each id overrides it; the draw for the span
      // is made all the same, as in SpanBERT's program.
      if (position == 0 || !is_masked_[position - 1]) drawn = stream.random();
      if (rules_.by_id) drawn = stream.random();
      positions[count] = static_cast<Position>(position);
      labels[count++] = ids[position];
      if (drawn < rules_.mask_limit)
        ids[position] = static_cast<Id>(rules_.mask);
      else if (drawn < rules_.random_limit)
        ids[position] = pool.ids[stream.below(pool.size)];
    }
    return count;
  }

 private:
  // Marks spans in is_masked_ until `wanted` ids are marked.
  template <class Stream>
  void draw(const uint8_t* starts, uint32_t size, uint32_t wanted, Stream& stream) {
    is_masked_.assign(size, 0);
    while (wanted) {
      uint32_t words = rules_.shortest + choose(stream.random());
      // SpanBERT's program draws a number here that it never uses. Skipping it would shift all later draws.
      stream.random();
      uint32_t position = stream.below(size);
      // An attempt whose position is masked already is dropped, with all its draws. Otherwise the span starts with the
      // word that contains the position.
      if (is_masked_[position]) continue;
      while (position && !starts[position]) --position;
      for (bool is_first = true; wanted && position < size; ++position, is_first = false) {
        // A word ends where the next word starts. The span ends after `words` words, or within a word when nothing is
        // wanted any more. Example: starts 1 0 1 1 0, span of 2 words from position 0: ids 0, 1 and 2.
        if (!is_first && starts[position] && !--words) break;
        // Ids that an earlier span masked do not count again.
        wanted -= !is_masked_[position];
        is_masked_[position] = 1;
      }
    }
  }

  // Returns the index of the first cumulative share above `drawn`, which is in [0, 1).
  uint32_t choose(double drawn) const {
    uint32_t index = 0;
    while (drawn >= rules_.lengths[index]) ++index;
    return index;
  }

  const SpanRules& rules_;
  std::vector<uint8_t> is_masked_;
};

// Calls found(left, right) for each run of neighbouring masked positions.
// are_external: report the unmasked ids next to the run, and skip a run that touches the block's first or last id.
// size: ids in the block.
template <class Position, class Found>
void span_boundaries(const Position* positions, uint32_t count, uint32_t size, bool are_external, Found found) {
  for (uint32_t first = 0, last = 0; first < count; first = ++last) {
    while (last + 1 < count && positions[last + 1] == positions[last] + 1) ++last;
    const uint32_t start = positions[first], stop = positions[last];
    if (!are_external)
      found(start, stop);
    else if (start > 0 && stop + 1 < size)
      found(start - 1, stop + 1);
  }
}

}  // namespace bertdata
