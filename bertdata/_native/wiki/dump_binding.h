// Python binding of the functions for dump pages that both extractors use.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "wiki/revisions.h"

namespace bertdata {

inline size_t count_revisions(const pybind11::bytes& data) {
  const std::string_view text(data);
  const pybind11::gil_scoped_release released;
  return wiki::count_revisions(text);
}

inline void bind_dump_pages(pybind11::module_& m) {
  m.def("count_revisions", &count_revisions, pybind11::arg("data"), "The number of <revision> tags in the data");
}

}  // namespace bertdata
