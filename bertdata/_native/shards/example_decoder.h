// Decodes TFRecords into columns of examples, and refuses records that the columns cannot hold. Twin of
// examples/fields.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "column.h"
#include "shards/record_format.h"
#include "shards/record_reader.h"

namespace bertdata {

// A column that is being decoded. Only the member that item_bytes selects is used.
struct DecodedColumn {
  uint8_t item_bytes = 4;
  Column<uint8_t> bytes;
  Column<uint16_t> shorts;
  Column<uint32_t> words;

  size_t size() const { return item_bytes == 1 ? bytes.size() : item_bytes == 2 ? shorts.size() : words.size(); }
  void push(uint32_t value) {
    if (item_bytes == 1)
      bytes.push(static_cast<uint8_t>(value));
    else if (item_bytes == 2)
      shorts.push(static_cast<uint16_t>(value));
    else
      words.push(value);
  }
  void append(const int64_t* values, size_t count) {
    if (item_bytes == 1)
      append_to(bytes, values, count);
    else if (item_bytes == 2)
      append_to(shorts, values, count);
    else
      append_to(words, values, count);
  }

 private:
  template <class T>
  static void append_to(Column<T>& column, const int64_t* values, size_t count) {
    T* room = column.room(count);
    for (size_t i = 0; i < count; ++i) room[i] = static_cast<T>(values[i]);
    column.added(count);
  }
};

// Decodes records whose format has no slots (see Source in record_format.h).
// A ragged column has as many items as its field of ones has ones, if there is such a field, else as many as its
// fields are wide.
class ExampleDecoder {
 public:
  explicit ExampleDecoder(const RecordFormat& format)
      : format_(format), counts_(format.columns.size()), is_counted_(format.columns.size()) {
    for (const FieldRule& field : format.fields)
      if (field.source == Source::kOnes)
        for (size_t c = 0; c < is_counted_.size(); ++c)
          if (format.columns[c].ends == format.columns[field.column].ends) is_counted_[c] = true;
  }

  // Decodes at most `limit` records of the block and moves `block` past them. Throws RecordError with the record's
  // index.
  std::vector<DecodedColumn> run(Bytes& block, size_t limit) {
    std::vector<DecodedColumn> out(format_.columns.size());
    for (size_t c = 0; c < out.size(); ++c) out[c].item_bytes = format_.columns[c].item_bytes;
    size_t record = 0;
    Bytes payload;
    try {
      for (; record < limit && next_frame(block, payload); ++record) {
        example_.parse(payload);
        add(out);
      }
    } catch (const ParseError& error) {
      throw RecordError(record, error.what());
    }
    return out;
  }

 private:
  using Ints = Column<int64_t>;

  // Returns the feature of a field. Throws ParseError if it is missing, or has another type or number of values.
  const ParsedFeature& feature(const FieldRule& field) const {
    const ParsedFeature* found = example_.find(field.key);
    if (!found || found->kind != (field.is_float ? kFloatList : kInt64List))
      throw ParseError("lacks the " + std::string(field.is_float ? "floats " : "integers ") + field.key);
    const size_t count = field.is_float ? found->float_count() : found->ints.size();
    if (count != field.width)
      throw ParseError(field.key + " has " + std::to_string(count) + " values, expected " +
                       std::to_string(field.width));
    return *found;
  }

  // Returns the index after the run of items from `from` on that equal `value`.
  static size_t leading(const Ints& values, size_t from, int64_t value) {
    constexpr size_t kBlock = 16;  // items compared without a branch
    size_t i = from;
    for (; i + kBlock <= values.size(); i += kBlock) {
      int64_t differences = 0;
      for (size_t k = 0; k < kBlock; ++k) differences |= values[i + k] ^ value;
      if (differences) break;
    }
    while (i < values.size() && values[i] == value) ++i;
    return i;
  }

  // Appends the parsed example to the columns. Fields of ones come first, because they say how many items of the other
  // fields are real and how many are padding.
  // input_mask 1 1 1 0 0, input_ids 101 7 102 0 0 -> ids 101 7 102
  void add(std::vector<DecodedColumn>& out) {
    if (example_.size() > format_.fields.size()) throw ParseError("holds more features than such an example has");
    for (const FieldRule& field : format_.fields)
      if (field.source == Source::kOnes) count_ones(field);
    for (const FieldRule& field : format_.fields) {
      if (field.source == Source::kValues)
        add_values(field, field.is_float ? whole_numbers(field) : feature(field).ints, out[field.column]);
      else if (field.source == Source::kAfter)
        add_place(field, feature(field).ints, out[field.column]);
    }
    for (size_t c = 0; c < out.size(); ++c) {
      const int ends = format_.columns[c].ends;
      if (ends < 0) continue;
      DecodedColumn& column = out[static_cast<size_t>(ends)];
      // Columns can share their end offsets. Only the first of these columns adds the example's offset.
      const size_t examples = column.size(), due = examples_ + 1;
      if (examples < due) column.push(static_cast<uint32_t>(out[c].size()));
    }
    ++examples_;
  }

  // Sets the number of items of the example's ragged columns to the number of ones at the field's start. Throws
  // ParseError unless zeros follow.
  void count_ones(const FieldRule& field) {
    const ParsedFeature& found = feature(field);
    size_t count = 0;
    bool ends_in_zeros;
    if (field.is_float) {
      float value = 1;
      const auto at = [&](size_t i) { return std::memcpy(&value, &found.floats[4 * i], 4), value; };
      while (count < field.width && at(count) == 1) ++count;
      size_t rest = count;
      while (rest < field.width && at(rest) == 0) ++rest;
      ends_in_zeros = rest == field.width;
    } else {
      count = leading(found.ints, 0, 1);
      ends_in_zeros = leading(found.ints, count, 0) == field.width;
    }
    if (!ends_in_zeros) throw ParseError(field.key + " is not ones, then zeros");
    const int ends = format_.columns[field.column].ends;
    for (size_t c = 0; c < counts_.size(); ++c)
      if (format_.columns[c].ends == ends) counts_[c] = count;
  }

  // Converts floats to integers. A float that is not a whole number within range becomes -1, which every column
  // refuses.
  const Ints& whole_numbers(const FieldRule& field) {
    const ParsedFeature& found = feature(field);
    whole_.truncate(0);
    int64_t* room = whole_.room(field.width);
    for (size_t i = 0; i < field.width; ++i) {
      float value;
      std::memcpy(&value, &found.floats[4 * i], 4);
      const bool is_whole = value >= 0 && value < static_cast<float>(kValueLimit) && value == std::floor(value);
      room[i] = is_whole ? static_cast<int64_t>(value) : -1;
    }
    whole_.added(field.width);
    return whole_;
  }

  // Appends the field's items after checking their range and the padding behind them.
  void add_values(const FieldRule& field, const Ints& values, DecodedColumn& out) {
    const ColumnRule& rule = format_.columns[field.column];
    const size_t count = rule.ends < 0 ? 1 : is_counted_[field.column] ? counts_[field.column] : field.width;
    if (leading(values, count, field.padding) != values.size())
      throw ParseError(field.key + " holds values in its padding");
    // Fast path: one comparison for the whole field.
    if (!rule.is_place && are_within(values, count, rule.most)) return out.append(values.data(), count);
    int64_t last = -1;
    for (size_t i = 0; i < count; ++i) {
      const int64_t value = values[i];
      if (value < 0 || value > int64_t{rule.most})
        throw ParseError(field.key + " holds " + std::to_string(value) + ", expected 0 to " + std::to_string(rule.most));
      // Positions must ascend and lie within the example's ids.
      if (rule.is_place && rule.ends >= 0) {
        if (value <= last || value >= static_cast<int64_t>(counts_[0]))
          throw ParseError(field.key + " do not ascend within the ids");
        last = value;
      }
      out.push(static_cast<uint32_t>(value));
    }
  }

  static bool are_within(const Ints& values, size_t count, uint32_t most) {
    uint64_t largest = 0;  // as unsigned, a negative number is larger than any allowed value
    for (size_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<uint64_t>(values[i]));
    return largest <= most;
  }

  // Appends the position where a field changes from 0 to 1, for example where the second text of a pair begins.
  void add_place(const FieldRule& field, const Ints& values, DecodedColumn& out) {
    const size_t place = std::min(counts_[0], leading(values, 0, 0));
    if (leading(values, place, 1) != counts_[0] || leading(values, counts_[0], 0) != values.size())
      throw ParseError(field.key + " is not zeros, then ones up to the last id");
    out.push(static_cast<uint32_t>(place));
  }

  const RecordFormat& format_;
  ParsedExample example_;
  std::vector<size_t> counts_;  // number of items of each column in the current example
  std::vector<bool> is_counted_;
  Ints whole_;
  size_t examples_ = 0;
};

}  // namespace bertdata
