// Python binding of the sentence splitter.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <vector>

#include "buffers.h"
#include "text/punkt.h"

namespace bertdata {

inline PunktVariant punkt_variant(const std::string& name) {
  if (name == "3.4.5") return PunktVariant::k3_4_5;
  if (name == "3.10.0") return PunktVariant::k3_10_0;
  if (name == "3.10.4") return PunktVariant::k3_10_4;
  throw py::value_error("variant: expected 3.4.5, 3.10.0 or 3.10.4, found " + name);
}

inline py::list split_paragraph(const Punkt& punkt, const std::string& paragraph) {
  std::vector<std::string_view> sentences;
  {
    py::gil_scoped_release released;
    punkt.split(reinterpret_cast<const uint8_t*>(paragraph.data()), paragraph.size(), [&](const Punkt::Sentence& s) {
      sentences.emplace_back(reinterpret_cast<const char*>(s.first), static_cast<size_t>(s.last - s.first));
    });
  }
  py::list strings;
  for (const std::string_view& sentence : sentences) strings.append(py::str(sentence.data(), sentence.size()));
  return strings;
}

inline py::bytes segment_lines(const Punkt& punkt, const py::buffer& text, bool keeps_indent) {
  const Array<uint8_t> array(text, "text");
  Column<uint8_t> out;
  {
    py::gil_scoped_release released;
    punkt.segment_lines(array.data, array.size, keeps_indent, out);
  }
  return as_bytes(out);
}

inline void bind_punkt(py::module_& m) {
  py::class_<Punkt>(m, "Punkt")
      .def(py::init([](const PunktTables::Words& abbreviations, const PunktTables::Pairs& collocations,
                       const PunktTables::Words& sentence_starters, const PunktTables::Contexts& contexts,
                       const std::string& variant) {
             return Punkt(PunktTables(abbreviations, collocations, sentence_starters, contexts),
                          punkt_variant(variant));
           }),
           py::kw_only(), py::arg("abbreviations"), py::arg("collocations"), py::arg("sentence_starters"),
           py::arg("contexts"), py::arg("variant"))
      .def("split", &split_paragraph, py::arg("paragraph"), "The sentences of one paragraph")
      .def("segment_lines", &segment_lines, py::arg("text"), py::arg("keeps_indent"),
           "Split UTF-8 lines into sentences, one per line");
}

}  // namespace bertdata
