// Copies selected examples of ragged columns, in any order. Twin of examples/columns.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "column.h"

namespace bertdata {

// Returns the end offsets of the selected examples' items after copying them one after another. Throws
// std::invalid_argument if `order` holds an index that is not below `count`, or if the offsets exceed 32 bits.
inline Column<uint32_t> taken_ends(const uint32_t* ends, size_t count, const int64_t* order, size_t taken) {
  Column<uint32_t> out;
  uint32_t* next = out.room(taken);
  uint64_t end = 0;
  for (size_t i = 0; i < taken; ++i) {
    const uint64_t example = static_cast<uint64_t>(order[i]);
    if (example >= count) throw std::invalid_argument("order: names an example that is not there");
    end += ends[example] - (example ? ends[example - 1] : 0);
    if (end > UINT32_MAX) throw std::invalid_argument("order: more items than 32-bit offsets count");
    next[i] = static_cast<uint32_t>(end);
  }
  out.added(taken);
  return out;
}

// Copies the items of the selected examples, item_bytes bytes each. `ends` must ascend, and taken_ends must have
// checked `order`.
inline Column<uint8_t> taken_items(const uint8_t* items, size_t item_bytes, const uint32_t* ends, const int64_t* order,
                                   const Column<uint32_t>& out_ends) {
  Column<uint8_t> out;
  const size_t taken = out_ends.size(), bytes = taken ? item_bytes * out_ends[taken - 1] : 0;
  uint8_t* next = out.room(bytes);
  for (size_t i = 0; i < taken; ++i) {
    const size_t start = order[i] ? ends[order[i] - 1] : 0, size = item_bytes * (ends[order[i]] - start);
    if (!size) continue;  // an empty buffer may have a null address, which memcpy must not get
    std::memcpy(next, items + item_bytes * start, size);
    next += size;
  }
  out.added(bytes);
  return out;
}

}  // namespace bertdata
