// Python binding of span masking.
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
#include "examples/bert_binding.h"
#include "examples/dynamic_masking_binding.h"
#include "examples/example_set.h"
#include "examples/span.h"

namespace bertdata {

template <class Id>
py::tuple as_tuple(SpanColumns<Id>&& c) {
  const bool tells_words = c.tells_words;
  py::tuple found = py::make_tuple(view(std::move(c.ids)), view(std::move(c.ends)), view(std::move(c.positions)),
                        view(std::move(c.labels)), view(std::move(c.mask_ends)), view(std::move(c.lefts)),
                        view(std::move(c.rights)), view(std::move(c.span_ends)));
  return tells_words ? py::tuple(found + py::make_tuple(view(std::move(c.word_starts)))) : found;
}

// What the kernel needs to know about a vocabulary.
struct SpanVocabulary {
  std::vector<uint8_t> continues_word;  // by id: the token continues a word (starts with ##)
  std::vector<uint32_t> replacements;
};

// Masks spans in examples at load. The first and last id of an example, [CLS] and [SEP], are never masked.
class PySpanMasker {
 public:
  PySpanMasker(const SpanRules& rules, const py::bytes& continues_word, std::vector<int32_t> replacements)
      : rules_(rules), replacements_(std::move(replacements)) {
    const std::string_view continues = continues_word;
    continues_word_.assign(continues.begin(), continues.end());
    if (replacements_.empty()) throw py::value_error("replacements: expected at least one");
    for (const int32_t id : replacements_)
      if (id < 0 || static_cast<size_t>(id) >= vocabulary()) throw py::value_error("an id is outside the vocabulary");
    if (rules_.mask >= vocabulary()) throw py::value_error("an id is outside the vocabulary");
  }

  uint32_t most() const { return rules_.most; }
  size_t vocabulary() const { return continues_word_.size(); }

  void mask(const LoadedExamples& examples) const {
    SpanMasker masker(rules_);
    const IdPool<int32_t> pool{replacements_.data(), static_cast<uint32_t>(replacements_.size())};
    std::vector<uint8_t> starts;
    for (size_t i = 0; i < examples.size(); ++i) {
      const uint32_t size = std::max(examples.length(i), 2u) - 2;
      int32_t* body = examples.ids_of(i) + 1;
      const uint8_t* words = examples.words_of(i) ? examples.words_of(i) + 1 : nullptr;
      starts.resize(size);
      for (uint32_t at = 0; at < size; ++at)
        starts[at] = words ? words[at] : !continues_word_[static_cast<size_t>(body[at])];
      BlockStream stream(examples.keys.data[i], examples.numbers.data[i]);
      int32_t* positions = examples.positions.out + i * rules_.most;
      const uint32_t count = masker.mask(body, starts.data(), size, examples.rates[i], pool, stream, positions,
                                         examples.labels.out + i * rules_.most);
      for (uint32_t m = 0; m < count; ++m) ++positions[m];  // count from [CLS] instead of the body's first id
      examples.counts.out[i] = static_cast<int32_t>(count);
    }
  }

 private:
  SpanRules rules_;
  std::vector<uint8_t> continues_word_;  // by id: the token continues a word (starts with ##)
  std::vector<int32_t> replacements_;
};

class PySpanExamples : public PyExampleSet<SpanExamples> {
 public:
  PySpanExamples(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
                 const py::object& word_starts, const SpanBlockRules& rules, const SpanVocabulary& vocabulary,
                 const std::vector<uint64_t>& keys,
                 const std::vector<uint32_t>& seed, uint32_t numpy_seed) {
    check_seed(seed);
    if (keys.empty()) throw py::value_error("keys: expected one for each pass");
    if (vocabulary.replacements.empty()) throw py::value_error("replacements: expected at least one");
    const uint32_t largest = *std::max_element(vocabulary.replacements.begin(), vocabulary.replacements.end());
    if (std::max({rules.cls, rules.sep, rules.spans.mask, largest}) >= vocabulary.continues_word.size())
      throw py::value_error("an id is outside the vocabulary");
    if (item_size(ids) == 2)
      make<uint16_t>(ids, sentence_ends, document_ends, word_starts, rules, vocabulary, keys, seed, numpy_seed);
    else
      make<uint32_t>(ids, sentence_ends, document_ends, word_starts, rules, vocabulary, keys, seed, numpy_seed);
  }

 private:
  // The examples hold a copy of the text, so the buffers are not kept. Sentences may be empty.
  template <class Id>
  void make(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
            const py::object& word_starts, const SpanBlockRules& rules, const SpanVocabulary& vocabulary,
            const std::vector<uint64_t>& keys, const std::vector<uint32_t>& seed,
            uint32_t numpy_seed) {
    const Array<Id> id_array(ids, "ids");
    const Array<uint32_t> sentences(sentence_ends, "sentence_ends"), documents(document_ends, "document_ends");
    check_ends(sentences, id_array.size, "sentence_ends");
    check_ends(documents, sentences.size, "document_ends");
    std::vector<uint8_t> starts(id_array.size);
    for (size_t i = 0; i < id_array.size; ++i) {
      if (id_array.data[i] >= vocabulary.continues_word.size())
        throw py::value_error("ids: an id is outside the vocabulary");
      starts[i] = !vocabulary.continues_word[id_array.data[i]];
    }
    if (const auto given = word_starts_of(word_starts, id_array.size, rules.tells_words))
      for (size_t i = 0; i < given->size; ++i) starts[i] = given->data[i] != 0;
    const DocumentView<Id> view{id_array.data, sentences.data, documents.data,
                                static_cast<uint32_t>(documents.size)};
    py::gil_scoped_release released;
    const std::vector<Id> replacements(vocabulary.replacements.begin(), vocabulary.replacements.end());
    set_ = std::make_unique<SpanExamples<Id>>(view, std::move(starts), rules, replacements, keys, seed, numpy_seed);
  }
};

inline SpanRules span_rules(uint32_t most, uint32_t shortest, std::vector<double>&& lengths, double mask_limit,
                            double random_limit, bool by_id, bool are_external, uint32_t mask) {
  if (most > 65535) throw py::value_error("most: expected at most 65535");
  if (shortest < 1 || shortest + lengths.size() > 65536) throw py::value_error("shortest: expected 1 to 65535");
  if (lengths.empty() || !std::is_sorted(lengths.begin(), lengths.end()) || !(lengths.back() >= 1))
    throw py::value_error("lengths: expected ascending shares, the last one 1");
  return SpanRules{most, shortest, std::move(lengths), mask_limit, random_limit, by_id, are_external, mask};
}

inline void bind_span(py::module_& m) {
  py::class_<SpanRules>(m, "SpanRules")
      .def(py::init([](uint32_t most, uint32_t shortest, std::vector<double> lengths, double mask_limit,
                       double random_limit, bool by_id, bool are_external, uint32_t mask) {
             return span_rules(most, shortest, std::move(lengths), mask_limit, random_limit, by_id, are_external, mask);
           }),
           py::kw_only(), py::arg("most"), py::arg("shortest"), py::arg("lengths"), py::arg("mask_limit"),
           py::arg("random_limit"), py::arg("by_id"), py::arg("are_external"), py::arg("mask"));

  py::class_<PySpanMasker> masker(m, "SpanMasker");
  masker.def(py::init<const SpanRules&, const py::bytes&, std::vector<int32_t>>(), py::kw_only(), py::arg("rules"),
             py::arg("continues_word"), py::arg("replacements"));
  bind_mask(masker);

  py::class_<PySpanExamples>(m, "SpanExamples")
      .def(py::init([](const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
                       const py::object& word_starts, const SpanRules& rules,
                       const py::bytes& continues_word, std::vector<uint32_t> replacements, uint32_t max_seq_length,
                       uint32_t cls, uint32_t sep, double masked_lm_prob, bool masks, bool as_original,
                       bool tells_words, const std::vector<uint64_t>& keys, const std::vector<uint32_t>& seed,
                       uint32_t numpy_seed) {
             if (max_seq_length < 3 || max_seq_length > 65535) throw py::value_error("max_seq_length out of range");
             if (!(masked_lm_prob > 0 && masked_lm_prob <= 1))
               throw py::value_error("masked_lm_prob: expected a share above 0, at most 1");
             const std::string_view continues = continues_word;
             const SpanVocabulary vocabulary{{continues.begin(), continues.end()}, std::move(replacements)};
             const SpanBlockRules of_blocks{max_seq_length, cls,         sep,         masked_lm_prob,
                                            masks,          as_original, tells_words, rules};
             return std::make_unique<PySpanExamples>(ids, sentence_ends, document_ends, word_starts, of_blocks,
                                                     vocabulary, keys, seed, numpy_seed);
           }),
           py::arg("ids"), py::arg("sentence_ends"), py::arg("document_ends"), py::arg("word_starts"), py::kw_only(),
           py::arg("rules"), py::arg("continues_word"), py::arg("replacements"), py::arg("max_seq_length"),
           py::arg("cls"), py::arg("sep"), py::arg("masked_lm_prob"), py::arg("masks"), py::arg("as_original"),
           py::arg("tells_words"), py::arg("keys"), py::arg("seed"), py::arg("numpy_seed"))
      .def("__len__", &PySpanExamples::size)
      .def_property_readonly("tokens", &PySpanExamples::tokens)
      .def_property_readonly("masked", &PySpanExamples::masked)
      .def_property_readonly("lost", &PySpanExamples::lost)
      .def("batch", &PySpanExamples::batch, py::arg("start"), py::arg("stop"), py::arg("step") = 1);
}

}  // namespace bertdata
