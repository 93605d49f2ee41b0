// Python binding of sets of n-grams.
#pragma once

#include <pybind11/pybind11.h>

#include "buffers.h"
#include "text/ngram_set.h"

namespace bertdata {

inline FoldedWords fold(const py::buffer& text) {
  const Array<uint8_t> array(text, "text");
  FoldedWords words;
  py::gil_scoped_release released;
  WordFolder().fold(array.data, array.size, words);
  return words;
}

inline py::str words_between(const FoldedWords& words, size_t start, size_t stop) {
  if (start == stop) return py::str("");
  return py::str(reinterpret_cast<const char*>(words.bytes.data()) + start, stop - start - 1);
}

inline py::object find_shared(const NgramSet& set, const py::buffer& text) {
  const FoldedWords words = fold(text);
  NgramSet::Shared shared;
  bool found;
  {
    py::gil_scoped_release released;
    found = set.find(words, shared);
  }
  if (!found) return py::none();
  return py::make_tuple(words_between(words, shared.start, shared.stop), shared.source);
}

inline void bind_ngrams(py::module_& m) {
  m.def(
      "fold_words",
      [](const py::buffer& text) {
        const FoldedWords words = fold(text);
        return words_between(words, 0, words.bytes.size());
      },
      py::arg("text"), "The folded words of a UTF-8 text, blanks between them");
  py::class_<NgramSet>(m, "NgramSet")
      .def(py::init<size_t>(), py::arg("words"))
      .def("__len__", &NgramSet::size)
      .def(
          "add",
          [](NgramSet& set, const py::buffer& text, uint32_t source) {
            const FoldedWords words = fold(text);
            py::gil_scoped_release released;
            set.add(words, source);
            return words.count();
          },
          py::arg("text"), py::arg("source"), "Add the n-grams of a UTF-8 text. Returns the number of its words")
      .def("find", &find_shared, py::arg("text"), "(n-gram, source) of the first one that the text shares, or None");
}

}  // namespace bertdata
