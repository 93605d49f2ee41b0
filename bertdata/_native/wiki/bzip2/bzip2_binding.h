// Python binding of the bzip2 decoder. Twin: wiki/dump/bzip2.py and wiki/dump/bzip2_blocks.py, which use Python's bz2.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "buffers.h"
#include "wiki/bzip2/block_decoder.h"
#include "wiki/bzip2/marks.h"

namespace bertdata {

// Decoder and output buffer that each thread keeps from block to block.
struct Decoding {
  bzip2::BlockDecoder decoder;
  Column<uint8_t> text;
};

// Copies the text to a new bytes object. The GIL is released while copying, because touching new memory for a block's
// text takes long.
inline py::bytes copied(const Column<uint8_t>& text) {
  py::bytes bytes(nullptr, text.size());
  char* const data = PyBytes_AS_STRING(bytes.ptr());
  {
    py::gil_scoped_release released;
    std::memcpy(data, text.data(), text.size());
  }
  return bytes;
}

// Returns the text of a block, or None if the block is refused. Throws OverflowError if it is longer than `most`
// bytes.
inline py::object decompress_block(const py::buffer& data, uint64_t first, uint64_t end, size_t most) {
  static thread_local std::unique_ptr<Decoding> kept;
  const Array<uint8_t> array(data, "data");
  bzip2::Outcome outcome;
  {
    py::gil_scoped_release released;
    if (!kept) kept = std::make_unique<Decoding>();
    outcome = kept->decoder.decode(array.data, array.size, first, end, most, kept->text);
  }
  if (outcome == bzip2::Outcome::kTooLong) throw std::overflow_error("the block's text is too long");
  if (outcome == bzip2::Outcome::kRefused) return py::none();
  return copied(kept->text);
}

inline std::vector<std::pair<uint64_t, bool>> find_marks(const py::buffer& data, size_t start, size_t stop) {
  const Array<uint8_t> array(data, "data");
  std::vector<std::pair<uint64_t, bool>> marks;
  {
    py::gil_scoped_release released;
    bzip2::MarkFinder::find(array.data, array.size, start, std::min(stop, array.size),
                            [&](uint64_t bit, bool is_end) { marks.emplace_back(bit, is_end); });
  }
  return marks;
}

inline void bind_bzip2(py::module_& m) {
  m.def("decompress_bzip2_block", &decompress_block, py::arg("data"), py::arg("first"), py::arg("end"),
        py::arg("most"),
        "The text of the bzip2 block in the bits first to end of the data; None where it is damaged, cut off or "
        "randomised, OverflowError where it has more than most bytes");
  m.def("find_bzip2_marks", &find_marks, py::arg("data"), py::arg("start"), py::arg("stop"),
        "List (bit, whether it ends a stream) for each bzip2 magic number that begins in bytes start to stop");
}

}  // namespace bertdata
