// Python binding of byte-level BPE.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "buffers.h"
#include "tokens/bpe_tokenizer.h"

namespace bertdata {

// (content, id, lstrip, rstrip, single_word, normalized)
using AddedTokenTuple = std::tuple<py::bytes, uint32_t, bool, bool, bool, bool>;

class PyByteBpe {
 public:
  PyByteBpe(const std::string& pattern, const std::string& digits, bool prefix_space, bool composes, bool wide,
            std::optional<uint32_t> unknown, const std::vector<uint32_t>& units, const py::buffer& merges,
            const std::vector<std::pair<py::bytes, uint32_t>>& whole_words, const std::vector<AddedTokenTuple>& added,
            const py::buffer& lengths, const py::buffer& characters, const std::vector<uint32_t>& newer_marks,
            const std::vector<uint32_t>& never_composed)
      : unknown_(unknown) {
    const Array<uint32_t> joins(merges, "merges");
    const Array<uint8_t> bits(characters, "characters");
    if (joins.size % 3) throw py::value_error("merges: expected three ids each");
    BpeRules rules{pattern_of(pattern), digits_of(digits), prefix_space, wide, items(lengths, "lengths")};
    const size_t size = rules.lengths.size();
    if (!wide && size > 0x10000) throw py::value_error("lengths: more than 65536 ids, which are not wide");
    const auto check = [&](uint32_t id) {
      if (id >= size) throw py::value_error("id " + std::to_string(id) + " has no length");
      return id;
    };
    for (const uint32_t id : units) check(id);
    for (size_t i = 2; i < joins.size; i += 3) check(joins.data[i]);
    std::unordered_map<std::string, uint32_t> words;
    for (const auto& [word, id] : whole_words) words.emplace(std::string(word), check(id));
    std::vector<AddedToken> in_text, in_normalized;
    for (const auto& [content, id, lstrip, rstrip, single_word, normalized] : added)
      (normalized ? in_normalized : in_text).push_back({std::string(content), check(id), lstrip, rstrip, single_word});
    std::unique_ptr<Composition> composition;
    if (composes) composition = std::make_unique<Composition>(newer_marks, never_composed);
    bpe_ = std::make_unique<ByteBpe>(std::move(rules), CharacterBitsTable(bits.data, bits.size),
                                     Merges(units, joins.data, joins.size / 3, std::move(words)), std::move(in_text),
                                     std::move(in_normalized), std::move(composition));
  }

  py::tuple tokenize(const py::buffer& text, const std::string& between) {
    const Array<uint8_t> array(text, "text");
    BpeDocuments documents;
    size_t unknown = 0;
    {
      py::gil_scoped_release released;
      bpe_->tokenize(array.data, array.size, between, documents);
      if (unknown_) unknown = documents.wide ? count(documents.ids32) : count(documents.ids16);
    }
    return py::make_tuple(ids(documents), view(std::move(documents.sentence_ends)),
                          view(std::move(documents.document_ends)), view(std::move(documents.word_starts)),
                          unknown_ ? py::object(py::int_(unknown)) : py::none());
  }

  py::tuple tokenize_each(const py::buffer& text, const py::buffer& ends) {
    const Array<uint8_t> array(text, "text");
    const Array<uint32_t> text_ends(ends, "ends");
    check_ends(text_ends, array.size, "ends");
    BpeDocuments documents;
    Column<uint32_t> id_ends;
    {
      py::gil_scoped_release released;
      bpe_->tokenize_each(array.data, text_ends.data, text_ends.size, documents, id_ends);
    }
    return py::make_tuple(ids(documents), view(std::move(id_ends)), view(std::move(documents.starts)),
                          view(std::move(documents.stops)), view(std::move(documents.word_starts)));
  }

 private:
  static BpePattern pattern_of(const std::string& name) {
    if (name == "gpt2") return BpePattern::kGpt2;
    if (name == "llama3") return BpePattern::kLlama3;
    if (name == "qwen2") return BpePattern::kQwen2;
    throw py::value_error("pattern: expected gpt2, llama3 or qwen2, found " + name);
  }
  static BpeDigits digits_of(const std::string& name) {
    if (name.empty()) return BpeDigits::kNone;
    if (name == "each") return BpeDigits::kEach;
    if (name == "runs") return BpeDigits::kRuns;
    throw py::value_error("digits: expected each, runs or nothing, found " + name);
  }
  static std::vector<uint32_t> items(const py::buffer& buffer, const char* name) {
    const Array<uint32_t> array(buffer, name);
    return {array.data, array.data + array.size};
  }
  static py::object ids(BpeDocuments& documents) {
    return documents.wide ? view(std::move(documents.ids32)) : view(std::move(documents.ids16));
  }
  template <class Id>
  size_t count(const Column<Id>& ids) const {
    return static_cast<size_t>(std::count(ids.data(), ids.data() + ids.size(), *unknown_));
  }

  std::optional<uint32_t> unknown_;
  std::unique_ptr<ByteBpe> bpe_;
};

inline void bind_byte_bpe(py::module_& m) {
  py::class_<PyByteBpe>(m, "ByteBpe")
      .def(py::init<const std::string&, const std::string&, bool, bool, bool, std::optional<uint32_t>,
                    const std::vector<uint32_t>&, const py::buffer&,
                    const std::vector<std::pair<py::bytes, uint32_t>>&, const std::vector<AddedTokenTuple>&,
                    const py::buffer&, const py::buffer&, const std::vector<uint32_t>&,
                    const std::vector<uint32_t>&>(),
           py::kw_only(), py::arg("pattern"), py::arg("digits"), py::arg("prefix_space"), py::arg("composes"),
           py::arg("wide"), py::arg("unknown"), py::arg("units"), py::arg("merges"), py::arg("whole_words"),
           py::arg("added"), py::arg("lengths"), py::arg("characters"), py::arg("newer_marks"),
           py::arg("never_composed"))
      .def("tokenize", &PyByteBpe::tokenize, py::arg("text"), py::arg("between"),
           "Tokenise a UTF-8 text: (ids, sentence_ends, document_ends, word_starts, number of unknown tokens)")
      .def("tokenize_each", &PyByteBpe::tokenize_each, py::arg("text"), py::arg("ends"),
           "Tokenise joined UTF-8 texts, given the end of each: (ids, end of each text's ids, starts, stops, word_starts)");
}

}  // namespace bertdata
