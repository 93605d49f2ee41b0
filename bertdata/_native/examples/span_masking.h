// Spans of a block and what stands in their place. Twin of examples/span/masking.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace bertdata {

struct SpanRules {
  uint32_t most, shortest;
  std::vector<double> lengths;  // cumulative shares, the last one 1
  double mask_limit, random_limit;
  bool by_id, are_external;
  uint32_t mask;
};

// Random ids are drawn from these.
template <class Id>
struct IdPool {
  const Id* ids;
  uint32_t size;
};

// Masks blocks one by one, in buffers that are used again for the next.
class SpanMasker {
 public:
  explicit SpanMasker(const SpanRules& rules) : rules_(rules) {}

  // Masks a block's ids in place, 1 to 65535, where `starts` has a byte for each id, 1 where a word starts. Writes the
  // masked positions and their original ids, room for rules.most each, and returns how many.
  template <class Id, class Position, class Stream>
  uint32_t mask(Id* ids, const uint8_t* starts, uint32_t size, double rate, const IdPool<Id>& pool, Stream& stream,
                Position* positions, Id* labels) {
    const double share = std::ceil(size * rate);
    draw(starts, size, share < rules_.most ? static_cast<uint32_t>(share) : rules_.most, stream);
    uint32_t count = 0;
    double drawn = 0;
    for (uint32_t position = 0; position < size; ++position) {
      if (!is_masked_[position]) continue;
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
  template <class Stream>
  void draw(const uint8_t* starts, uint32_t size, uint32_t wanted, Stream& stream) {
    is_masked_.assign(size, 0);
    while (wanted) {
      uint32_t words = rules_.shortest + choose(stream.random());
      stream.random();
      uint32_t position = stream.below(size);
      if (is_masked_[position]) continue;
      while (position && !starts[position]) --position;
      for (bool is_first = true; wanted && position < size; ++position, is_first = false) {
        if (!is_first && starts[position] && !--words) break;
        wanted -= !is_masked_[position];
        is_masked_[position] = 1;
      }
    }
  }

  // The first weight whose cumulative share is above the draw, which is below 1.
  uint32_t choose(double drawn) const {
    uint32_t index = 0;
    while (drawn >= rules_.lengths[index]) ++index;
    return index;
  }

  const SpanRules& rules_;
  std::vector<uint8_t> is_masked_;
};

// Calls found(left, right) for the boundaries of each span with targets, by the masked positions of a block of so many
// ids.
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
