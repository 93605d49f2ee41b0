// Python binding of BERT's sentence pairs.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/bert.h"
#include "examples/example_set.h"

namespace bertdata {

template <class Id>
py::tuple as_tuple(BertColumns<Id>&& c) {
  const py::tuple found =
      py::make_tuple(view(std::move(c.ids)), view(std::move(c.ends)), view(std::move(c.first_lengths)),
                     view(std::move(c.positions)), view(std::move(c.labels)), view(std::move(c.mask_ends)),
                     view(std::move(c.next_labels)));
  return c.tells_words ? py::tuple(found + py::make_tuple(view(std::move(c.word_starts)))) : found;
}

inline void check_seed(const std::vector<uint32_t>& seed) {
  if (seed.empty()) throw py::value_error("seed: expected at least one digit");
}

// Sentence-pair examples. They refer to ranges of the Python buffers, so this class keeps the buffers alive.
template <template <class> class Examples>
class PyPairExamples : public PyExampleSet<Examples> {
 public:
  PyPairExamples(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
               const BertRules& rules, const std::vector<uint32_t>& seed, const py::object& word_starts,
               bool tells_words)
      : sentence_ends_(sentence_ends, "sentence_ends"), document_ends_(document_ends, "document_ends") {
    check_seed(seed);
    if (item_size(ids) == 2)
      make<uint16_t>(ids, rules, seed, word_starts, tells_words);
    else
      make<uint32_t>(ids, rules, seed, word_starts, tells_words);
  }

 private:
  template <class Id>
  void make(const py::buffer& ids, BertRules rules, const std::vector<uint32_t>& seed, const py::object& word_starts,
            bool tells_words) {
    auto array = std::make_shared<Array<Id>>(ids, "ids");
    check_ends(sentence_ends_, array->size, "sentence_ends");
    check_ends(document_ends_, sentence_ends_.size, "document_ends");
    check_none_empty(sentence_ends_, "sentence_ends");
    check_none_empty(document_ends_, "document_ends");
    Id largest = 0;
    bool holds_special = false;
    const Id cls = static_cast<Id>(rules.cls), sep = static_cast<Id>(rules.sep);
    for (size_t i = 0; i < array->size; ++i) {  // no branches, so that the compiler can vectorise the loop
      const Id id = array->data[i];
      largest = std::max(largest, id);
      holds_special |= (id == cls) | (id == sep);
    }
    if (array->size && largest >= rules.continues_word.size())
      throw py::value_error("ids: an id is outside the vocabulary");
    rules.skips_special_ids = holds_special;
    ids_ = array;
    word_starts_ = word_starts_of(word_starts, array->size, tells_words);
    const DocumentView<Id> view{array->data, sentence_ends_.data, document_ends_.data,
                                static_cast<uint32_t>(document_ends_.size),
                                word_starts_ ? word_starts_->data : nullptr};
    py::gil_scoped_release released;
    this->set_ = std::make_unique<Examples<Id>>(view, rules, seed, tells_words);
  }

  std::shared_ptr<void> ids_;
  Array<uint32_t> sentence_ends_, document_ends_;
  std::optional<Array<uint8_t>> word_starts_;
};

template <template <class> class Examples>
void bind_pairs(py::module_& m, const char* name) {
  using Pairs = PyPairExamples<Examples>;
  py::class_<Pairs>(m, name)
      .def(py::init<const py::buffer&, const py::buffer&, const py::buffer&, const BertRules&,
                    const std::vector<uint32_t>&, const py::object&, bool>(),
           py::arg("ids"), py::arg("sentence_ends"), py::arg("document_ends"), py::arg("rules"), py::arg("seed"),
           py::arg("word_starts") = py::none(), py::arg("tells_words") = false)
      .def("__len__", &Pairs::size)
      .def_property_readonly("tokens", &Pairs::tokens)
      .def_property_readonly("masked", &Pairs::masked)
      .def_property_readonly("lost", &Pairs::lost)
      .def("batch", &Pairs::batch, py::arg("start"), py::arg("stop"), py::arg("step") = 1);
}

inline void bind_bert(py::module_& m) {
  py::class_<BertRules>(m, "BertRules")
      .def(py::init([](uint32_t max_seq_length, uint32_t max_predictions, uint32_t dupe_factor,
                       double masked_lm_prob, double mask_share, double kept_of_unchanged, double short_seq_prob,
                       bool whole_word_mask, bool masks,
                       bool fills_predictions, uint8_t own_next_label, uint32_t cls, uint32_t sep, uint32_t mask,
                       std::vector<uint32_t> replacements, const py::bytes& continues_word, bool swaps_halves,
                       std::vector<double> ngram_limits, uint32_t ngram_seed, bool permutes) {
             check_limits(ngram_limits);
             if (max_seq_length < 5 || max_seq_length > 65535 || max_predictions > max_seq_length)
               throw py::value_error("max_seq_length or max_predictions out of range");
             for (const double share : {masked_lm_prob, mask_share, kept_of_unchanged, short_seq_prob})
               if (!std::isfinite(share)) throw py::value_error("a probability is not a finite number");
             if (replacements.empty()) throw py::value_error("replacements: expected at least one");
             const std::string_view flags = continues_word;
             uint32_t largest = std::max({cls, sep, mask});
             for (const uint32_t id : replacements) largest = std::max(largest, id);
             if (largest >= flags.size()) throw py::value_error("an id is outside the vocabulary");
             return BertRules{max_seq_length,    max_predictions,  dupe_factor,
                              masked_lm_prob,    mask_share,       kept_of_unchanged,
                              short_seq_prob,    whole_word_mask,  masks,
                              fills_predictions, false,            own_next_label,
                              cls,               sep,              mask,
                              std::move(replacements),
                              std::vector<uint8_t>(flags.begin(), flags.end()),
                              swaps_halves,
                              NgramRules{std::move(ngram_limits), ngram_seed, permutes}};
           }),
           py::kw_only(), py::arg("max_seq_length"), py::arg("max_predictions"), py::arg("dupe_factor"),
           py::arg("masked_lm_prob"), py::arg("mask_share"),
           py::arg("kept_of_unchanged"), py::arg("short_seq_prob"), py::arg("whole_word_mask"),
           py::arg("masks"), py::arg("fills_predictions"), py::arg("own_next_label"), py::arg("cls"),
           py::arg("sep"), py::arg("mask"), py::arg("replacements"), py::arg("continues_word"),
           py::arg("swaps_halves") = false, py::arg("ngram_limits") = std::vector<double>(),
           py::arg("ngram_seed") = 0u, py::arg("permutes") = false);
  bind_pairs<BertExamples>(m, "BertExamples");
}

}  // namespace bertdata
