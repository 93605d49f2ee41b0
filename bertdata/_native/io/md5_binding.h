// Python binding of md5.h.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "buffers.h"
#include "io/md5.h"

namespace bertdata {

inline void update_md5s(Md5Streams& streams, const std::vector<pybind11::buffer>& pieces) {
  if (pieces.size() != streams.size())
    throw pybind11::value_error("pieces: expected one for each of " + std::to_string(streams.size()) + " streams");
  std::vector<Array<uint8_t>> arrays;
  arrays.reserve(pieces.size());
  for (const pybind11::buffer& piece : pieces) arrays.emplace_back(piece, "piece");
  std::vector<Md5Streams::Piece> found;
  for (const Array<uint8_t>& array : arrays) found.push_back({array.data, array.size});
  pybind11::gil_scoped_release released;
  streams.update(std::move(found));
}

inline pybind11::list md5_digests(const Md5Streams& streams) {
  pybind11::list found;
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto digest = streams.digest(i);
    found.append(pybind11::bytes(reinterpret_cast<const char*>(digest.data()), digest.size()));
  }
  return found;
}

inline void bind_md5(pybind11::module_& m) {
  pybind11::class_<Md5Streams>(m, "Md5Streams")
      .def(pybind11::init<size_t>(), pybind11::arg("streams"))
      .def("update", &update_md5s, pybind11::arg("pieces"), "Append a piece to each stream")
      .def("digests", &md5_digests, "The digest of each stream so far");
}

}  // namespace bertdata
