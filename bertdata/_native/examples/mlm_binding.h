// Python binding of masked blocks of text.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/bert_binding.h"
#include "examples/dynamic_masking_binding.h"
#include "examples/example_set.h"
#include "examples/mlm.h"

namespace bertdata {

template <class Id>
py::tuple as_tuple(MlmColumns<Id>&& c) {
  const py::tuple found = py::make_tuple(view(std::move(c.ids)), view(std::move(c.ends)), view(std::move(c.positions)),
                                         view(std::move(c.labels)), view(std::move(c.mask_ends)));
  return c.tells_words ? py::tuple(found + py::make_tuple(view(std::move(c.word_starts)))) : found;
}

class PyMlmExamples : public PyExampleSet<MlmExamples> {
 public:
  PyMlmExamples(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
                const MlmRules& rules, const py::object& word_starts, bool tells_words,
                const std::vector<uint64_t>& keys, const std::vector<uint32_t>& seed) {
    check_seed(seed);
    if (keys.empty()) throw py::value_error("keys: expected one for each pass");
    if (item_size(ids) == 2)
      make<uint16_t>(ids, sentence_ends, document_ends, rules, word_starts, tells_words, keys, seed);
    else
      make<uint32_t>(ids, sentence_ends, document_ends, rules, word_starts, tells_words, keys, seed);
  }

 private:
  // The examples hold a copy of the text, so the buffers are not kept. Sentences may be empty.
  template <class Id>
  void make(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
            const MlmRules& rules, const py::object& word_starts, bool tells_words,
            const std::vector<uint64_t>& keys, const std::vector<uint32_t>& seed) {
    const Array<Id> id_array(ids, "ids");
    const Array<uint32_t> sentences(sentence_ends, "sentence_ends"), documents(document_ends, "document_ends");
    check_ends(sentences, id_array.size, "sentence_ends");
    check_ends(documents, sentences.size, "document_ends");
    const size_t vocabulary = rules.masking.is_special.size();
    for (size_t i = 0; i < id_array.size; ++i)
      if (id_array.data[i] >= vocabulary) throw py::value_error("ids: an id is outside the vocabulary");
    const auto starts = word_starts_of(word_starts, id_array.size, tells_words);
    const DocumentView<Id> view{id_array.data, sentences.data, documents.data,
                                static_cast<uint32_t>(documents.size), starts ? starts->data : nullptr};
    py::gil_scoped_release released;
    set_ = std::make_unique<MlmExamples<Id>>(view, rules, tells_words, keys, seed);
  }
};

inline MlmRules mlm_rules(uint8_t breaks, uint32_t max_seq_length, uint32_t cls, uint32_t sep,
                          double masked_lm_prob, bool masks, MaskingRules&& masking) {
  if (breaks > static_cast<uint8_t>(Breaks::kEos)) throw py::value_error("breaks: expected 0 to 3");
  if (max_seq_length < 2 || max_seq_length > 65535 || masking.most > max_seq_length)
    throw py::value_error("max_seq_length or most out of range");
  if (!(masked_lm_prob > 0 && masked_lm_prob <= 1))
    throw py::value_error("masked_lm_prob: expected a share above 0, at most 1");
  if (std::max(cls, sep) >= masking.is_special.size()) throw py::value_error("an id is outside the vocabulary");
  return MlmRules{static_cast<Breaks>(breaks), max_seq_length, cls, sep, masked_lm_prob, masks, std::move(masking)};
}

inline void bind_mlm(py::module_& m) {
  py::class_<MlmRules>(m, "MlmRules")
      .def(py::init([](uint8_t breaks, uint32_t max_seq_length, uint32_t cls, uint32_t sep, double masked_lm_prob,
                       bool masks, uint32_t most, uint32_t mask, uint64_t mask_limit, uint64_t random_limit,
                       std::vector<uint32_t> replacements, const py::bytes& is_special,
                       const py::bytes& continues_word, bool whole_words, bool draws_counts) {
             return mlm_rules(breaks, max_seq_length, cls, sep, masked_lm_prob, masks,
                              masking_rules(most, mask, mask_limit, random_limit, std::move(replacements), is_special,
                                            continues_word, whole_words, draws_counts));
           }),
           py::kw_only(), py::arg("breaks"), py::arg("max_seq_length"), py::arg("cls"), py::arg("sep"),
           py::arg("masked_lm_prob"), py::arg("masks"), py::arg("most"), py::arg("mask"), py::arg("mask_limit"),
           py::arg("random_limit"), py::arg("replacements"), py::arg("is_special"), py::arg("continues_word"),
           py::arg("whole_words"), py::arg("draws_counts"));

  py::class_<PyMlmExamples>(m, "MlmExamples")
      .def(py::init<const py::buffer&, const py::buffer&, const py::buffer&, const MlmRules&,
                    const py::object&, bool, const std::vector<uint64_t>&, const std::vector<uint32_t>&>(),
           py::arg("ids"), py::arg("sentence_ends"), py::arg("document_ends"), py::kw_only(), py::arg("rules"),
           py::arg("word_starts") = py::none(), py::arg("tells_words") = false, py::arg("keys"), py::arg("seed"))
      .def("__len__", &PyMlmExamples::size)
      .def_property_readonly("tokens", &PyMlmExamples::tokens)
      .def_property_readonly("masked", &PyMlmExamples::masked)
      .def_property_readonly("lost", &PyMlmExamples::lost)
      .def("batch", &PyMlmExamples::batch, py::arg("start"), py::arg("stop"), py::arg("step") = 1);
}

}  // namespace bertdata
