// Python binding of records: TFRecord frames with Examples, encoded, decoded and made canonical.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "buffers.h"
#include "rooms.h"
#include "shards/crc32c.h"
#include "shards/example_decoder.h"
#include "shards/example_encoder.h"
#include "shards/file_ranges.h"
#include "shards/record_reader.h"

namespace bertdata {
namespace {

Bytes as_block(const Array<uint8_t>& array) { return {array.data, array.data + array.size}; }

// Columns and fields of an objective's records. Encodes batches and decodes blocks accordingly.
class PyRecordFormat {
 public:
  // For each column: (item bytes, index of the column of its end offsets or -1, whether it holds positions, largest
  // value).
  using ColumnTuple = std::tuple<uint8_t, int, bool, uint32_t>;
  // For each field: (key, whether it is float, source, column, width, padding).
  using FieldTuple = std::tuple<std::string, bool, int, size_t, uint32_t, uint32_t>;

  PyRecordFormat(const std::vector<ColumnTuple>& columns, const std::vector<FieldTuple>& fields, int positions,
                 int labels, uint32_t first_slot) {
    const int count = static_cast<int>(columns.size());
    for (const auto& [item_bytes, ends, is_place, most] : columns) {
      if ((item_bytes != 1 && item_bytes != 2 && item_bytes != 4) || ends >= count || most >= kValueLimit)
        throw py::value_error("columns: item width, column of end offsets or largest value out of range");
      format_.columns.push_back({item_bytes, ends, false, is_place, most});
    }
    for (const auto& column : columns)
      if (std::get<1>(column) >= 0) format_.columns[static_cast<size_t>(std::get<1>(column))].is_ends = true;
    for (const ColumnRule& rule : format_.columns)
      if (rule.is_ends && (rule.item_bytes != 4 || rule.ends >= 0))
        throw py::value_error("columns: end offsets are four bytes wide and have none of their own");
    if (!count || format_.columns[0].ends < 0 || positions >= count || labels >= count)
      throw py::value_error("columns: the first must hold the ids");
    format_.positions = positions, format_.labels = labels, format_.first_slot = first_slot;
    for (const auto& [key, is_float, source, column, width, padding] : fields) {
      if (column >= columns.size() || source < 0 || source > static_cast<int>(Source::kUsedSlots))
        throw py::value_error("fields: column or source out of range");
      format_.fields.push_back({key, is_float, static_cast<Source>(source), column, width, padding});
      check_field(format_.fields.back());
    }
    if (format_.has_slots()) check_slots();
  }

  py::object encode(const std::vector<py::buffer>& buffers) const {
    if (buffers.size() != format_.columns.size()) throw py::value_error("batch: columns are missing");
    std::vector<py::buffer_info> infos;
    std::vector<ColumnView> views;
    for (const py::buffer& buffer : buffers) infos.push_back(buffer.request());
    for (size_t c = 0; c < infos.size(); ++c) views.push_back(as_view(infos[c], c));
    const size_t count = views[static_cast<size_t>(format_.columns[0].ends)].size;
    for (size_t c = 0; c < views.size(); ++c) check(views, c, count);
    Column<uint8_t> out;
    {
      py::gil_scoped_release released;
      out.room(count * record_room() + 64);
      ExampleEncoder(format_, views, out).encode(count);
    }
    return view(std::move(out));
  }

  // Returns (columns of the examples, bytes of the block used).
  py::tuple decode(const py::buffer& data, size_t limit) const {
    const Array<uint8_t> array(data, "block");
    Bytes block = as_block(array);
    std::vector<DecodedColumn> columns;
    {
      py::gil_scoped_release released;
      columns = ExampleDecoder(format_).run(block, limit);
    }
    py::list views;
    for (DecodedColumn& column : columns) {
      if (column.item_bytes == 1)
        views.append(view(std::move(column.bytes)));
      else if (column.item_bytes == 2)
        views.append(view(std::move(column.shorts)));
      else
        views.append(view(std::move(column.words)));
    }
    return py::make_tuple(views, array.size - block.size());
  }

 private:
  void check_field(const FieldRule& field) const {
    const ColumnRule& rule = format_.columns[field.column];
    const bool counts_ids = field.source == Source::kAfter || field.source == Source::kSlotAfter;
    if (field.width > kWidest || field.padding >= kValueLimit ||
        (field.source == Source::kOnes && rule.ends < 0) ||
        (field.is_float && field.source != Source::kOnes && field.source != Source::kValues) || (counts_ids && (!rule.is_place || rule.ends >= 0)))
      throw py::value_error("field " + field.key + ": its width, padding or column does not suit its source");
  }

  // Throws ValueError unless all fields in slots have the same width, except the labels' field, which has a value for
  // each mask slot.
  void check_slots() const {
    if (format_.positions < 0 || format_.labels < 0) throw py::value_error("fields: slots need positions and labels");
    uint32_t room = 0;
    for (const FieldRule& field : format_.fields)
      if (is_slotted(field)) room = std::max(room, field.width);
    for (const FieldRule& field : format_.fields)
      if (is_slotted(field) && field.width != (holds_labels(field) ? format_.first_slot : room))
        throw py::value_error("field " + field.key + ": has not as many slots as the others");
    if (format_.first_slot > room) throw py::value_error("first_slot: beyond the slots");
  }
  static bool is_slotted(const FieldRule& field) {
    return field.source >= Source::kSlots && field.source <= Source::kSlotAfter;
  }
  bool holds_labels(const FieldRule& field) const {
    return field.source == Source::kSlots && static_cast<int>(field.column) == format_.labels;
  }

  // Ids may be 2 or 4 bytes wide. All other columns have the declared width.
  ColumnView as_view(const py::buffer_info& info, size_t c) const {
    const ColumnRule& rule = format_.columns[c];
    const bool fits = info.itemsize == rule.item_bytes || (rule.item_bytes == 4 && !rule.is_ends && info.itemsize == 2);
    if (!is_flat(info) || !fits) throw_not_flat("column " + std::to_string(c), rule.item_bytes, info);
    return {static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size), static_cast<size_t>(info.itemsize)};
  }

  void check(const std::vector<ColumnView>& views, size_t c, size_t count) const {
    const ColumnRule& rule = format_.columns[c];
    const ColumnView& column = views[c];
    if (rule.ends < 0) {
      if (column.size != count) throw py::value_error("batch: columns differ in length");
    } else {
      check_ends(views[static_cast<size_t>(rule.ends)], column.size, count);
      for (const FieldRule& field : format_.fields)
        if (field.column == c && field.source < Source::kMaskedSlots && (field.width || field.source == Source::kOnes))
          check_sizes(views[static_cast<size_t>(rule.ends)], field.width);
    }
    for (const FieldRule& field : format_.fields)
      if (field.column == c && field.source == Source::kAfter)
        check_sizes(views[static_cast<size_t>(format_.columns[0].ends)], field.width);
    if (rule.is_ends) return;
    const uint64_t most = rule.most;
    if (column.item_bytes < 4 && most >= (uint64_t{1} << 8 * column.item_bytes) - 1) return check_place(views, c);
    for (size_t i = 0; i < column.size; ++i)
      if (column[i] > most) throw LossyExample("an id or value is negative or above " + std::to_string(most));
    check_place(views, c);
  }

  // Throws ValueError if a position lies beyond its example's ids.
  void check_place(const std::vector<ColumnView>& views, size_t c) const {
    const ColumnRule& rule = format_.columns[c];
    if (!rule.is_place || rule.ends >= 0) return;
    const ColumnView& ends = views[static_cast<size_t>(format_.columns[0].ends)];
    for (size_t i = 0; i < ends.size; ++i)
      if (views[c][i] > ends[i] - (i ? ends[i - 1] : 0))
        throw py::value_error("batch: example " + std::to_string(i) + " does not fit the layout");
  }

  static void check_ends(const ColumnView& ends, size_t total, size_t count) {
    uint32_t last = 0;
    for (size_t i = 0; i < ends.size; ++i) {
      if (ends[i] < last) throw py::value_error("batch: offsets do not ascend");
      last = ends[i];
    }
    if (ends.size != count) throw py::value_error("batch: columns differ in length");
    if (last != total) throw py::value_error("batch: last offset does not meet the data's end");
  }

  static void check_sizes(const ColumnView& ends, uint32_t width) {
    for (size_t i = 0; i < ends.size; ++i)
      if (ends[i] - (i ? ends[i - 1] : 0) > width)
        throw py::value_error("batch: example " + std::to_string(i) + " does not fit the layout");
  }

  // Returns an estimate of a record's size in bytes.
  size_t record_room() const {
    size_t room = 100;
    for (const FieldRule& field : format_.fields) {
      const bool is_wide = field.is_float || field.source == Source::kValues || field.source == Source::kSlots;
      room += 40 + field.key.size() + field.width * (is_wide ? 3 : 1);
    }
    return room;
  }

  RecordFormat format_;
};

// Returns (canonical frames, bytes of the block used, records).
py::tuple canonicalize_block(const py::buffer& data) {
  const Array<uint8_t> array(data, "block");
  Bytes block = as_block(array);
  Column<uint8_t> out;
  size_t records;
  {
    py::gil_scoped_release released;
    out.room(block.size() + 64);
    records = Canonicalizer().run(block, out);
  }
  return py::make_tuple(as_bytes(out), array.size - block.size(), records);
}

// Returns the offset after each of the block's first frames.
py::object list_frame_ends(const py::buffer& data, size_t limit) {
  const Array<uint8_t> array(data, "block");
  if (array.size > kLongestRecord) throw py::value_error("block: longer than the longest record");
  Column<uint32_t> ends;
  {
    py::gil_scoped_release released;
    find_frame_ends(as_block(array), limit, ends);
  }
  return view(std::move(ends));
}

// Reads a range of each of some open files, which are given by their descriptors. Returns (bytes of all ranges,
// number of ranges before the first that cannot be read). A single call reads them all, because each time that a thread
// releases Python's lock, it may wait long to get it back.
py::tuple read_ranges(const py::buffer& files, const py::buffer& starts, const py::buffer& sizes) {
  const Array<int32_t> file(files, "files");
  const Array<int64_t> start(starts, "starts");
  const Array<uint32_t> size(sizes, "sizes");
  if (file.size != start.size || file.size != size.size) throw py::value_error("ranges: differ in number");
  size_t total = 0, done = 0;
  for (size_t i = 0; i < size.size; ++i) total += size.data[i];
  Column<uint8_t> out;
  {
    py::gil_scoped_release released;
    for (out.room(total); done < file.size; ++done) {
      if (!read_range(file.data[done], start.data[done], size.data[done], out.room(size.data[done]))) break;
      out.added(size.data[done]);
    }
  }
  return py::make_tuple(view(std::move(out)), done);
}

}  // namespace

void bind_records(py::module_& m) {
  py::register_exception<LossyExample>(m, "LossyExample", PyExc_ValueError);
  static py::exception<RecordError> record_error(m, "RecordError", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const RecordError& error) {
      PyErr_SetObject(record_error.ptr(), py::make_tuple(error.record, error.what()).ptr());
    }
  });

  py::class_<PyRecordFormat>(m, "RecordFormat")
      .def(py::init<const std::vector<PyRecordFormat::ColumnTuple>&, const std::vector<PyRecordFormat::FieldTuple>&,
                    int, int, uint32_t>(),
           py::kw_only(), py::arg("columns"), py::arg("fields"), py::arg("positions"), py::arg("labels"),
           py::arg("first_slot"))
      .def("encode", &PyRecordFormat::encode, py::arg("columns"), "Framed canonical records of a batch's columns")
      .def("decode", &PyRecordFormat::decode, py::arg("block"), py::arg("limit"),
           "Decode the examples of a block: (columns, bytes used)");

  m.def("canonicalize", &canonicalize_block, py::arg("block"), "(canonical frames, bytes used, records) of a block");
  m.def("find_frame_ends", &list_frame_ends, py::arg("block"), py::arg("limit"),
        "Offset after each of the first frames of a block, of which the last may end beyond the block");
  m.def("read_ranges", &read_ranges, py::arg("files"), py::arg("starts"), py::arg("sizes"),
        "(bytes of ranges of open files, number of ranges before the first that cannot be read)");
  m.def(
      "crc32c",
      [](const py::buffer& data) {
        const Array<uint8_t> array(data, "data");
        return crc32c(array.data, array.size);
      },
      "Return the CRC-32C of a buffer");
}

}  // namespace bertdata
