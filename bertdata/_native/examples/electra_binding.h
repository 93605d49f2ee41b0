// Python binding of ELECTRA's examples.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/bert_binding.h"
#include "examples/electra.h"
#include "examples/example_set.h"

namespace bertdata {

template <class Id>
py::tuple as_tuple(ElectraColumns<Id>&& c) {
  return py::make_tuple(view(std::move(c.ids)), view(std::move(c.ends)), view(std::move(c.first_lengths)));
}

class PyElectraExamples : public PyExampleSet<ElectraExamples> {
 public:
  PyElectraExamples(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
                    ElectraStream& stream, uint32_t cls, uint32_t sep) {
    if (item_size(ids) == 2)
      make<uint16_t>(ids, sentence_ends, document_ends, stream, cls, sep);
    else
      make<uint32_t>(ids, sentence_ends, document_ends, stream, cls, sep);
  }

 private:
  // The examples hold copies of the ids, so the buffers are not kept. Sentences may be empty.
  template <class Id>
  void make(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
            ElectraStream& stream, uint32_t cls, uint32_t sep) {
    const Array<Id> id_array(ids, "ids");
    const Array<uint32_t> sentences(sentence_ends, "sentence_ends"), documents(document_ends, "document_ends");
    check_ends(sentences, id_array.size, "sentence_ends");
    check_ends(documents, sentences.size, "document_ends");
    if (std::max(cls, sep) > static_cast<Id>(~Id{0})) throw py::value_error("cls or sep is wider than the ids");
    const DocumentView<Id> view{id_array.data, sentences.data, documents.data,
                                static_cast<uint32_t>(documents.size)};
    py::gil_scoped_release released;
    set_ = std::make_unique<ElectraExamples<Id>>(view, cls, sep, stream);
  }
};

inline void bind_electra(py::module_& m) {
  py::class_<ElectraStream>(m, "ElectraStream")
      .def(py::init([](const std::vector<uint32_t>& seed, uint32_t max_seq_length, uint32_t inputs) {
             check_seed(seed);
             if (max_seq_length < ElectraStream::kShortest || max_seq_length > 65535)
               throw py::value_error("max_seq_length out of range");
             return std::make_unique<ElectraStream>(seed, max_seq_length, inputs);
           }),
           py::arg("seed"), py::arg("max_seq_length"), py::arg("inputs"));

  py::class_<PyElectraExamples>(m, "ElectraExamples")
      .def(py::init<const py::buffer&, const py::buffer&, const py::buffer&, ElectraStream&, uint32_t, uint32_t>(),
           py::arg("ids"), py::arg("sentence_ends"), py::arg("document_ends"), py::kw_only(), py::arg("stream"),
           py::arg("cls"), py::arg("sep"))
      .def("__len__", &PyElectraExamples::size)
      .def_property_readonly("tokens", &PyElectraExamples::tokens)
      .def_property_readonly("masked", &PyElectraExamples::masked)
      .def_property_readonly("lost", &PyElectraExamples::lost)
      .def("batch", &PyElectraExamples::batch, py::arg("start"), py::arg("stop"), py::arg("step") = 1);
}

}  // namespace bertdata
