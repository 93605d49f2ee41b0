// Converts columns to Python buffers and Python buffers to arrays. Shared by all bindings.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "column.h"

namespace bertdata {

namespace py = pybind11;

// A column that Python holds and sees as a one-dimensional buffer.
template <class T>
struct Owned {
  Column<T> column;
};

template <class T>
py::object view(Column<T>&& column) {
  auto owned = std::make_unique<Owned<T>>();
  owned->column = std::move(column);
  return py::reinterpret_steal<py::object>(PyMemoryView_FromObject(py::cast(std::move(owned)).ptr()));
}

inline py::bytes as_bytes(const Column<uint8_t>& column) {
  return py::bytes(reinterpret_cast<const char*>(column.data()), column.size());
}

template <class T>
void bind_owned(py::module_& m, const char* name) {
  py::class_<Owned<T>>(m, name, py::buffer_protocol()).def_buffer([](Owned<T>& owned) {
    return py::buffer_info(owned.column.data(), static_cast<py::ssize_t>(owned.column.size()));
  });
}

// Returns whether a buffer is one-dimensional and contiguous, with integers in this machine's byte order.
inline bool is_flat(const py::buffer_info& info) {
  const bool foreign = info.format.find_first_of(">!efdg?") != std::string::npos;
  return info.ndim == 1 && !foreign && (info.size < 2 || info.strides[0] == info.itemsize);
}

[[noreturn]] inline void throw_not_flat(const std::string& name, size_t item_bytes, const py::buffer_info& info) {
  throw py::value_error(name + ": expected a flat buffer of " + std::to_string(item_bytes) +
                        "-byte integers, found items " + info.format + " of " + std::to_string(info.itemsize) +
                        " bytes in " + std::to_string(info.ndim) + " dimension(s)");
}

// A Python buffer of integers as an array. Throws ValueError unless item size and shape fit.
template <class T>
struct Array {
  py::buffer_info info;
  const T* data;
  size_t size;

  Array(const py::buffer& buffer, const char* name) : info(buffer.request()) {
    if (!is_flat(info) || info.itemsize != sizeof(T)) throw_not_flat(name, sizeof(T), info);
    data = static_cast<const T*>(info.ptr);
    size = static_cast<size_t>(info.size);
  }
};

// Returns the word starts of a document set with `ids` ids, or nullopt for None. Throws ValueError if the length is
// wrong, or if they are missing although tells_words asks for them.
inline std::optional<Array<uint8_t>> word_starts_of(const py::object& word_starts, size_t ids, bool tells_words) {
  if (word_starts.is_none()) {
    if (tells_words) throw py::value_error("word_starts: expected a byte for each id");
    return std::nullopt;
  }
  std::optional<Array<uint8_t>> found(std::in_place, py::cast<py::buffer>(word_starts), "word_starts");
  if (found->size != ids) throw py::value_error("word_starts: expected a byte for each id");
  return found;
}

inline size_t item_size(const py::buffer& buffer) { return static_cast<size_t>(buffer.request().itemsize); }

inline void check_ends(const Array<uint32_t>& ends, size_t total, const char* name) {
  uint32_t last = 0;
  for (size_t i = 0; i < ends.size; ++i) {
    if (ends.data[i] < last) throw py::value_error(std::string(name) + ": offsets do not ascend");
    last = ends.data[i];
  }
  if (last != total) throw py::value_error(std::string(name) + ": last offset does not meet the data's end");
}

inline void check_none_empty(const Array<uint32_t>& ends, const char* name) {
  uint32_t last = 0;
  for (size_t i = 0; i < ends.size; last = ends.data[i++])
    if (ends.data[i] == last) throw py::value_error(std::string(name) + ": item " + std::to_string(i) + " is empty");
}

}  // namespace bertdata
