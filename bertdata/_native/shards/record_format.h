// Describes the columns of an objective's examples, and the fields of tf.train.Example that are made from them.
// Python reads the description from schemas/example.json and passes it in. No field name occurs in the C++ code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bertdata {

// Ids and other values must be below this, the limit of put_small_varint. Twin of examples/fields.py.
constexpr uint32_t kValueLimit = 1u << 21;

// Largest width of a field of fixed width: the longest sequence.
constexpr uint32_t kWidest = 1u << 16;

// An example that its format cannot represent without loss.
struct LossyExample : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A column of records.ExampleBatch.
struct ColumnRule {
  uint8_t item_bytes;  // bytes of a decoded item; ids to encode may be 2 or 4 bytes wide
  int ends;            // index of the column with the end offsets of its items; -1: one item per example
  // is_ends: the column holds end offsets. is_place: it holds positions within the example's ids.
  bool is_ends, is_place;
  uint32_t most;  // largest allowed value
};

// How a field is made from its column. Twin of examples/fields.py and examples/slots.py.
// Slots are Graphcore's layout of an example: first the ids at masked positions, then from slot first_slot on all other
// ids, each with its original position in another field.
enum class Source : uint8_t {
  kValues,         // the column's items
  kOnes,           // a 1 for each item
  kAfter,          // for each id of the example: 0 before the column's value, 1 from there on
  kSlots,          // the items in slots: masked positions from slot 0, all others from slot first_slot
  kSlotPositions,  // the position of the id that is in each slot
  kSlotAfter,      // kAfter, in slots
  kMaskedSlots,    // end of the used slots of masked positions
  kUsedSlots,      // end of all used slots
};

// A field of the record and how it is made.
struct FieldRule {
  std::string key;
  bool is_float;
  Source source;
  size_t column;
  uint32_t width;  // number of values after padding; 0: no padding
  uint32_t padding;
};

// Format of an objective's records. Fields are sorted by key. Column 0 holds the ids. positions and labels are the
// indices of the columns with the masks, or -1.
struct RecordFormat {
  std::vector<ColumnRule> columns;
  std::vector<FieldRule> fields;
  int positions, labels;
  uint32_t first_slot;  // first slot of positions that are not masked

  bool has_slots() const {
    for (const FieldRule& field : fields)
      if (field.source >= Source::kSlots) return true;
    return false;
  }
};

// View of a column of a batch to encode.
struct ColumnView {
  const uint8_t* data;
  size_t size, item_bytes;

  uint32_t operator[](size_t i) const {
    if (item_bytes == 2) return reinterpret_cast<const uint16_t*>(data)[i];
    return item_bytes == 4 ? reinterpret_cast<const uint32_t*>(data)[i] : data[i];
  }
};

}  // namespace bertdata
