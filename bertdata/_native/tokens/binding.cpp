// Python binding of the tokenisers.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "buffers.h"
#include "rooms.h"
#include "tokens/bpe_binding.h"
#include "tokens/tokenizer.h"

namespace bertdata {
namespace {

struct PyTokenizer {
  Tokenizer tokenizer;

  py::tuple tokenize(const py::buffer& text) {
    const Array<uint8_t> array(text, "text");
    Documents documents;
    {
      py::gil_scoped_release released;
      tokenizer.tokenize(array.data, array.size, documents);
    }
    py::object ids = documents.wide ? view(std::move(documents.ids32)) : view(std::move(documents.ids16));
    return py::make_tuple(ids, view(std::move(documents.sentence_ends)), view(std::move(documents.document_ends)),
                          documents.unknown, view(std::move(documents.left_out)));
  }

  py::tuple tokenize_each(const py::buffer& text, const py::buffer& ends) {
    const Array<uint8_t> array(text, "text");
    const Array<uint32_t> text_ends(ends, "ends");
    check_ends(text_ends, array.size, "ends");
    Documents documents;
    Column<uint32_t> id_ends;
    {
      py::gil_scoped_release released;
      tokenizer.tokenize_each(array.data, text_ends.data, text_ends.size, documents, id_ends);
    }
    py::object ids = documents.wide ? view(std::move(documents.ids32)) : view(std::move(documents.ids16));
    return py::make_tuple(ids, view(std::move(id_ends)));
  }
};

}  // namespace

void bind_tokens(py::module_& m) {
  py::class_<PyTokenizer>(m, "Tokenizer")
      .def(py::init([](const std::vector<std::string>& tokens, const std::vector<uint32_t>& ids, uint32_t unknown,
                       bool lower_case, bool strips_accents, bool final_sigma, bool splits_ideographs,
                       bool drops_unassigned, bool keeps_special_tokens, bool joins_lines, uint32_t max_word_chars,
                       const std::vector<std::pair<uint32_t, uint32_t>>& left_out_points,
                       const std::vector<std::string>& left_out_strings) {
             if (tokens.size() != ids.size()) throw py::value_error("tokens and ids differ in length");
             for (const std::string& string : left_out_strings)
               if (string.empty()) throw py::value_error("left_out_strings: one is empty");
             const TokenRules rules{lower_case,       strips_accents,       final_sigma, splits_ideographs,
                                    drops_unassigned, keeps_special_tokens, joins_lines, max_word_chars};
             return std::unique_ptr<PyTokenizer>(
                 new PyTokenizer{Tokenizer(tokens, ids, unknown, rules, LeftOut(left_out_points, left_out_strings))});
           }),
           py::kw_only(), py::arg("tokens"), py::arg("ids"), py::arg("unknown"), py::arg("lower_case"),
           py::arg("strips_accents"), py::arg("final_sigma") = true, py::arg("splits_ideographs") = true,
           py::arg("drops_unassigned"), py::arg("keeps_special_tokens"), py::arg("joins_lines") = false,
           py::arg("max_word_chars"), py::arg("left_out_points") = std::vector<std::pair<uint32_t, uint32_t>>{},
           py::arg("left_out_strings") = std::vector<std::string>{})
      .def("tokenize", &PyTokenizer::tokenize,
           "Tokenise a UTF-8 text: (ids, sentence_ends, document_ends, number of [UNK], documents left out)")
      .def("tokenize_each", &PyTokenizer::tokenize_each, py::arg("text"), py::arg("ends"),
           "Tokenise joined UTF-8 texts, given the end of each: (ids, end of each text's ids)");
  bind_byte_bpe(m);
}

}  // namespace bertdata
