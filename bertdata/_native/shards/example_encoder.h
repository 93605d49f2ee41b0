// Encodes examples as TFRecords in canonical form. Twin of examples/fields.py and examples/slots.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "column.h"
#include "shards/record_format.h"
#include "shards/tfrecord.h"

namespace bertdata {

// Encodes one example at a time. The scratch buffers are reused for the next example.
class ExampleEncoder {
 public:
  ExampleEncoder(const RecordFormat& format, const std::vector<ColumnView>& columns, Column<uint8_t>& out)
      : format_(format), columns_(columns), frames_(out), has_slots_(format.has_slots()),
        scratch_(format.fields.size()), starts_(columns.size()), stops_(columns.size()) {
    uint32_t widest = 0;
    for (const FieldRule& field : format.fields) {
      widest = std::max(widest, field.width);
      if (field.source >= Source::kSlots) slots_room_ = std::max(slots_room_, field.width);
    }
    // A window into "ones, then zeros" gives any row of ones followed by zeros without writing it.
    // widest 4: ones_ = 1 1 1 1 0 0 0 0; a row of 3 ones in 4 starts at index 1
    ones_.assign(2 * size_t{widest}, 0);
    std::fill(ones_.begin(), ones_.begin() + static_cast<ptrdiff_t>(widest), uint8_t{1});
    float_ones_.assign(8 * size_t{widest}, 0);
    const float one = 1.0f;
    for (size_t i = 0; i < widest; ++i) std::memcpy(&float_ones_[4 * i], &one, 4);
    widest_ = widest;
    features_.reserve(format.fields.size());
  }

  void encode(size_t count) {
    for (size_t example = 0; example < count; ++example) {
      // starts_ and stops_: range of each column's items in this example.
      for (size_t c = 0; c < columns_.size(); ++c) {
        const int ends = format_.columns[c].ends;
        starts_[c] = ends < 0 ? example : example ? columns_[ends][example - 1] : 0;
        stops_[c] = ends < 0 ? example + 1 : columns_[ends][example];
      }
      if (has_slots_) fill_slots();
      features_.clear();
      for (size_t f = 0; f < format_.fields.size(); ++f) add(format_.fields[f], scratch_[f]);
      frames_.add(features_.data(), features_.size());
    }
    frames_.flush();
  }

 private:
  size_t items(size_t column) const { return stops_[column] - starts_[column]; }

  // Adds the feature of a field. Its data stays in `scratch` until the record is written.
  void add(const FieldRule& field, std::vector<uint8_t>& scratch) {
    const size_t count = items(field.column), width = field.width ? field.width : count;
    const FeatureKind kind = field.is_float ? kFloatList : kInt64List;
    if (field.source == Source::kOnes) {
      const uint8_t* row = field.is_float ? &float_ones_[4 * (widest_ - count)] : &ones_[widest_ - count];
      features_.emplace_back(field.key, kind, row, field.is_float ? 4 * width : width);
      return;
    }
    // Four bytes per value, because put_small_varint always writes four, and 16 more for put_four_varints.
    scratch.resize(4 * std::max(width, count) + 16);
    features_.emplace_back(field.key, kind, scratch.data(), write(field, width, scratch.data()));
  }

  // Writes the field's values as varints, or as floats, and returns the number of bytes.
  size_t write(const FieldRule& field, size_t width, uint8_t* out) {
    const size_t first = starts_[field.column];
    uint8_t* p = out;
    switch (field.source) {
      case Source::kValues:
        if (field.is_float) return put_floats(field, width, out);
        p = pack(columns_[field.column], first, items(field.column), p);
        p = pad(p, width - items(field.column), field.padding);
        break;
      case Source::kAfter: {
        const size_t place = columns_[field.column][first];
        std::memset(out, 0, width);
        std::memset(out + place, 1, items(0) - place);
        return width;
      }
      case Source::kSlots:
        if (static_cast<int>(field.column) == format_.labels) {
          for (uint32_t label : slot_labels_) p = put_small_varint(p, label);
        } else {
          for (const Slot& slot : slots_) p = put_small_varint(p, slot.id);
        }
        break;
      case Source::kSlotPositions:
        for (const Slot& slot : slots_) p = put_small_varint(p, slot.is_used ? slot.position : field.padding);
        break;
      case Source::kSlotAfter: {
        const size_t place = columns_[field.column][first];
        for (const Slot& slot : slots_) *p++ = slot.is_used && slot.position >= place;
        break;
      }
      case Source::kMaskedSlots:
        p = put_varint(p, masked_end_);
        break;
      case Source::kUsedSlots:
        p = put_varint(p, used_end_);
        break;
      case Source::kOnes:
        break;  // written by add() without a copy
    }
    return static_cast<size_t>(p - out);
  }

  // Writes the items and their padding as 32-bit floats and returns the number of bytes.
  size_t put_floats(const FieldRule& field, size_t width, uint8_t* out) const {
    const size_t first = starts_[field.column], count = items(field.column);
    for (size_t i = 0; i < width; ++i) {
      const float value = static_cast<float>(i < count ? columns_[field.column][first + i] : field.padding);
      std::memcpy(out + 4 * i, &value, 4);
    }
    return 4 * width;
  }

  // Writes `count` padding values. A value below 128 is a single byte.
  static uint8_t* pad(uint8_t* p, size_t count, uint32_t padding) {
    if (padding < 128) return static_cast<uint8_t*>(std::memset(p, static_cast<int>(padding), count)) + count;
    while (count--) p = put_small_varint(p, padding);
    return p;
  }

  static uint8_t* pack(const ColumnView& column, size_t first, size_t count, uint8_t* p) {
#ifdef BERTDATA_HAS_SSE42
    if (column.item_bytes == 2 && has_crc_instruction())
      return put_varints(p, reinterpret_cast<const uint16_t*>(column.data) + first, count);
#endif
    for (size_t i = first; i < first + count; ++i) p = put_small_varint(p, column[i]);
    return p;
  }

  // Fills the slots in Graphcore's order: masked positions from slot 0 on, all others from slot first_slot on. Ids 0
  // are left out, because in this format 0 means an unused slot.
  void fill_slots() {
    slots_.assign(slots_room_, Slot{0, 0, false});
    slot_labels_.assign(format_.first_slot, 0);
    const ColumnView &ids = columns_[0], &positions = columns_[static_cast<size_t>(format_.positions)],
                     &labels = columns_[static_cast<size_t>(format_.labels)];
    size_t mask = starts_[static_cast<size_t>(format_.positions)];
    const size_t last_mask = stops_[static_cast<size_t>(format_.positions)];
    masked_end_ = 0, used_end_ = format_.first_slot;
    for (uint32_t position = 0; position < items(0); ++position) {
      const bool masked = mask < last_mask && positions[mask] == position;
      const uint32_t label = masked ? labels[mask++] : 0, id = ids[starts_[0] + position];
      if (id == 0) continue;
      if (!masked && used_end_ >= slots_.size())
        throw LossyExample("an example has more unmasked ids than max_seq_length - max_predictions_per_seq");
      if (masked && masked_end_ >= slot_labels_.size())
        throw LossyExample("an example has more masks than max_predictions_per_seq");
      if (masked) slot_labels_[masked_end_] = label;
      slots_[masked ? masked_end_++ : used_end_++] = {id, position, true};
    }
  }

  // A slot of the example: an id and its position in the example. Unused slots have id 0.
  struct Slot {
    uint32_t id, position;
    bool is_used;
  };

  const RecordFormat& format_;
  const std::vector<ColumnView>& columns_;
  FrameWriter frames_;
  bool has_slots_;
  std::vector<std::vector<uint8_t>> scratch_;
  std::vector<size_t> starts_, stops_;  // range of each column's items in the current example
  std::vector<Feature> features_;
  std::vector<uint8_t> ones_, float_ones_;
  size_t widest_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> slot_labels_;
  uint32_t slots_room_ = 0;
  size_t masked_end_ = 0, used_end_ = 0;
};

}  // namespace bertdata
