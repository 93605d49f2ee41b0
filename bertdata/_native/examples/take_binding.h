// Python binding of take.h: copies selected examples of ragged columns.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "buffers.h"
#include "examples/take.h"

namespace bertdata {

// Returns (ends, list of the bytes of each column's items) of the selected examples.
inline pybind11::tuple take_ragged(const pybind11::buffer& ends, const std::vector<pybind11::buffer>& columns,
                                   const pybind11::buffer& order) {
  const Array<uint32_t> ends_array(ends, "ends");
  const Array<int64_t> order_array(order, "order");
  std::vector<pybind11::buffer_info> infos;
  for (const pybind11::buffer& column : columns) {
    infos.push_back(column.request());
    const pybind11::buffer_info& info = infos.back();
    if (!is_flat(info)) throw_not_flat("column", static_cast<size_t>(info.itemsize), info);
    check_ends(ends_array, static_cast<size_t>(info.size), "ends");
  }
  Column<uint32_t> found_ends;
  std::vector<Column<uint8_t>> found;
  {
    pybind11::gil_scoped_release released;
    found_ends = taken_ends(ends_array.data, ends_array.size, order_array.data, order_array.size);
    for (const pybind11::buffer_info& info : infos)
      found.push_back(taken_items(static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.itemsize),
                                  ends_array.data, order_array.data, found_ends));
  }
  pybind11::list items;
  for (Column<uint8_t>& column : found) items.append(view(std::move(column)));
  return pybind11::make_tuple(view(std::move(found_ends)), items);
}

inline void bind_take(pybind11::module_& m) {
  m.def("take_ragged", &take_ragged, pybind11::arg("ends"), pybind11::arg("columns"), pybind11::arg("order"),
        "Copy the examples with these numbers, in this order: (ends, bytes of each column's items)");
}

}  // namespace bertdata
