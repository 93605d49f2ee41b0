// Columns of an objective's examples, and the fields of tf.train.Example that are made of them.
// Handed over from Python, which reads them in schemas/example.json; no field is named here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bertdata {

// Ids and other values are below this. Twin of examples/fields.py. put_small_varint takes no more.
constexpr uint32_t kValueLimit = 1u << 21;

// Values of a field of fixed width are at most this many: the longest sequence.
constexpr uint32_t kWidest = 1u << 16;

struct LossyExample : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A column of records.ExampleBatch.
struct ColumnRule {
  uint8_t item_bytes;  // as columns are decoded; ids may come 2 or 4 bytes wide
  int ends;            // the column of the end offsets of its items; -1: one item an example
  bool is_ends, is_place;
  uint32_t most;  // largest value
};

// Ways to make a field of its column. Twin of examples/fields.py and examples/slots.py.
enum class Source : uint8_t {
  kValues,         // the items
  kOnes,           // 1 for each item
  kAfter,          // for each id: 0 below the column's value, 1 from there on
  kSlots,          // the items in slots: masked positions from slot 0, all others from slot P
  kSlotPositions,  // the position of the id in each slot
  kSlotAfter,      // kAfter in slots
  kMaskedSlots,    // end of the slots of masked positions
  kUsedSlots,      // end of all slots in use
};

struct FieldRule {
  std::string key;
  bool is_float;
  Source source;
  size_t column;
  uint32_t width;  // 0: as many values as there are
  uint32_t padding;
};

// Fields sorted by key. Column 0 holds the ids. Positions and labels are those of masks, or -1.
struct RecordFormat {
  std::vector<ColumnRule> columns;
  std::vector<FieldRule> fields;
  int positions, labels;
  uint32_t first_slot;  // of the positions that are not masked

  bool has_slots() const {
    for (const FieldRule& field : fields)
      if (field.source >= Source::kSlots) return true;
    return false;
  }
};

// A column of a batch, as handed over.
struct ColumnView {
  const uint8_t* data;
  size_t size, item_bytes;

  uint32_t operator[](size_t i) const {
    if (item_bytes == 2) return reinterpret_cast<const uint16_t*>(data)[i];
    return item_bytes == 4 ? reinterpret_cast<const uint32_t*>(data)[i] : data[i];
  }
};

}  // namespace bertdata
