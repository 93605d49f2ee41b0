// Python binding of ModernBERT's order, packer and masks.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/dynamic_masking_binding.h"
#include "loaders/modernbert.h"

namespace bertdata {

inline py::object dxsm_permutation(uint64_t seed, uint32_t count) {
  std::vector<uint32_t> items(count);
  {
    py::gil_scoped_release released;
    std::iota(items.begin(), items.end(), 0u);
    DxsmStream(seed).permute(items);
  }
  Column<uint32_t> found;
  std::copy(items.begin(), items.end(), found.room(count));
  found.added(count);
  return view(std::move(found));
}

inline py::object pack_rows(ModernBertPacker& packer, size_t rows) {
  ModernBertPacker::Rows found;
  bool is_there;
  {
    py::gil_scoped_release released;
    is_there = packer.pack(rows, found);
  }
  if (!is_there) return py::none();
  return py::make_tuple(view(std::move(found.places)), view(std::move(found.ends)));
}

template <class Id>
std::pair<int64_t, int64_t> draw_cells(PcgStream& stream, const py::buffer& ids, const py::buffer& row_ends, const py::buffer& made,
                const ModernBertRule& rule) {
  const Array<Id> given(ids, "ids");
  const Array<int64_t> ends(row_ends, "row_ends");
  const Writable<int64_t> cells(made, "made");
  const size_t rows = ends.size, count = cells.size / 3, width = rows ? count / rows : 0;
  if (!rows || cells.size != 3 * rows * width) throw py::value_error("made: expected three times rows of cells");
  check_apart({{"made", cells}, {"ids", given}, {"row_ends", ends}}, 1);
  int64_t start = 0;
  for (size_t row = 0; row < rows; start = ends.data[row++])
    if (ends.data[row] < start || static_cast<size_t>(ends.data[row] - start) > width)
      throw py::value_error("row_ends: a row's ids are more than its cells, or do not ascend");
  if (static_cast<size_t>(start) != given.size) throw py::value_error("row_ends: the last is not the end of the ids");
  if (!(rule.mask_prob > 0 && rule.mask_prob <= 1)) throw py::value_error("mask_prob: expected above 0, at most 1");
  if (rule.mask_id < 0 || rule.padding_id < 0) throw py::value_error("ids: expected 0 or more");
  py::gil_scoped_release released;
  const ModernBertCells out{cells.out, cells.out + count, cells.out + 2 * count};
  ModernBertMasking masking(stream, rule, out);
  const int64_t redrawn = masking.mask(given.data, ends.data, rows, width);
  return {redrawn, masking.real()};
}

template <class Id>
py::object take_sequences_of(const py::buffer& ids, const py::buffer& bounds, const py::buffer& numbers, int64_t most) {
  const Array<Id> given(ids, "ids");
  const Array<int64_t> limits(bounds, "bounds"), chosen(numbers, "numbers");
  if (most < 1) throw py::value_error("most: expected 1 or more");
  for (size_t i = 0; i < chosen.size; ++i) {
    const int64_t number = chosen.data[i];
    if (number < 0 || static_cast<size_t>(number) + 1 >= limits.size)
      throw py::value_error("numbers: names a sequence that is not there");
    const int64_t start = limits.data[number], end = limits.data[number + 1];
    if (start < 0 || end < start || static_cast<size_t>(end) > given.size)
      throw py::value_error("bounds: a sequence is outside the ids");
  }
  Column<Id> found;
  {
    py::gil_scoped_release released;
    found = taken_sequences(given.data, limits.data, chosen.data, chosen.size, most);
  }
  return view(std::move(found));
}

inline py::object take_sequences(const py::buffer& ids, const py::buffer& bounds, const py::buffer& numbers,
                                 int64_t most) {
  if (item_size(ids) == sizeof(uint16_t)) return take_sequences_of<uint16_t>(ids, bounds, numbers, most);
  return take_sequences_of<uint32_t>(ids, bounds, numbers, most);
}

inline void bind_modernbert(py::module_& m) {
  m.def("dxsm_permutation", &dxsm_permutation, py::arg("seed"), py::arg("count"),
        "Draw NumPy's Generator(PCG64DXSM(seed)).permutation(count)");

  m.def("take_sequences", &take_sequences, py::arg("ids"), py::arg("bounds"), py::arg("numbers"), py::arg("most"),
        "Join the ids of these sequences, at most `most` of each");

  py::class_<ModernBertPacker>(m, "ModernBertPacker")
      .def(py::init([](const py::buffer& lengths, size_t batch_size, size_t buffer_size, uint32_t width) {
             const Array<uint32_t> given(lengths, "lengths");
             if (!batch_size || given.size >= UINT32_MAX) throw py::value_error("packer: a size is out of range");
             return ModernBertPacker({given.data, given.data + given.size}, batch_size, buffer_size, width);
           }),
           py::arg("lengths"), py::kw_only(), py::arg("batch_size"), py::arg("buffer_size"), py::arg("width"))
      .def("pack", &pack_rows, py::arg("rows"), "(places, ends of rows) of the next batch, or None at the end")
      .def("state",
           [](const ModernBertPacker& packer) {
             return py::make_tuple(packer.taken(),
                                   std::vector<uint32_t>(packer.waiting().begin(), packer.waiting().end()));
           })
      .def("set_state", &ModernBertPacker::restore, py::arg("taken"), py::arg("waiting"));

  py::class_<PcgStream>(m, "ModernBertMasks")
      .def(py::init<uint64_t>(), py::arg("seed"))
      .def("state",
           [](const PcgStream& stream) {
             const PcgStream::State& kept = stream.state();
             return py::make_tuple(kept.state.high, kept.state.low,
                                   kept.has_half ? std::optional<uint32_t>(kept.half) : std::nullopt);
           })
      .def("set_state",
           [](PcgStream& stream, uint64_t high, uint64_t low, std::optional<uint32_t> half) {
             stream.set_state({{high, low}, half.value_or(0), half.has_value()});
           },
           py::arg("high"), py::arg("low"), py::arg("half"))
      .def("draw",
           [](PcgStream& stream, const py::buffer& ids, const py::buffer& row_ends, const py::buffer& made,
              double mask_prob, int64_t mask_id, int64_t padding_id) {
             const ModernBertRule rule{mask_prob, mask_id, padding_id};
             if (item_size(ids) == sizeof(uint16_t)) return draw_cells<uint16_t>(stream, ids, row_ends, made, rule);
             return draw_cells<uint32_t>(stream, ids, row_ends, made, rule);
           },
           py::arg("ids"), py::arg("row_ends"), py::arg("made"), py::kw_only(), py::arg("mask_prob"),
           py::arg("mask_id"), py::arg("padding_id"),
           "Mask rows of ids into one buffer of ids, labels and attention mask: (integers drawn again, cells without padding)");
}

}  // namespace bertdata
