// The Python face of the kernels. Kernels hold no Python objects and run without the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <variant>

#include "crc32c.h"
#include "examples.h"
#include "mt19937.h"
#include "punkt.h"
#include "record_reader.h"
#include "tfrecord.h"
#include "tokenizer.h"

namespace py = pybind11;
using namespace bertdata;

namespace {

// A column owned by the kernels, seen from Python as a one-dimensional buffer.
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

template <class T>
void bind_owned(py::module_& m, const char* name) {
  py::class_<Owned<T>>(m, name, py::buffer_protocol()).def_buffer([](Owned<T>& owned) {
    return py::buffer_info(owned.column.data(), static_cast<py::ssize_t>(owned.column.size()));
  });
}

// A Python buffer of unsigned integers as an array; checks item size and shape.
template <class T>
struct Array {
  py::buffer_info info;
  const T* data;
  size_t size;

  Array(const py::buffer& buffer, const char* name) : info(buffer.request()) {
    const bool contiguous = info.ndim == 1 && (info.size == 0 || info.strides[0] == info.itemsize);
    if (!contiguous || info.itemsize != sizeof(T))
      throw py::value_error(std::string(name) + ": expected a flat buffer of " + std::to_string(sizeof(T)) +
                            "-byte items, found items of " + std::to_string(info.itemsize) + " bytes in " +
                            std::to_string(info.ndim) + " dimension(s)");
    data = static_cast<const T*>(info.ptr);
    size = static_cast<size_t>(info.size);
  }
};

size_t item_size(const py::buffer& buffer) { return static_cast<size_t>(buffer.request().itemsize); }

void check_ends(const Array<uint32_t>& ends, size_t total, const char* name) {
  uint32_t last = 0;
  for (size_t i = 0; i < ends.size; ++i) {
    if (ends.data[i] < last) throw py::value_error(std::string(name) + ": offsets do not ascend");
    last = ends.data[i];
  }
  if (last != total) throw py::value_error(std::string(name) + ": last offset does not meet the data's end");
}

py::bytes as_bytes(const Column<uint8_t>& column) {
  return py::bytes(reinterpret_cast<const char*>(column.data()), column.size());
}

struct PyTokenizer {
  Tokenizer tokenizer;

  py::tuple tokenize(const py::buffer& text) {
    const py::buffer_info info = text.request();
    Documents documents;
    {
      py::gil_scoped_release released;
      tokenizer.tokenize(static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize),
                         documents);
    }
    py::object ids = documents.wide ? view(std::move(documents.ids32)) : view(std::move(documents.ids16));
    return py::make_tuple(ids, view(std::move(documents.sentence_ends)), view(std::move(documents.document_ends)));
  }
};

PunktVariant punkt_variant(const std::string& name) {
  if (name == "3.4.5") return PunktVariant::k345;
  if (name == "current") return PunktVariant::kCurrent;
  throw py::value_error("variant: expected 3.4.5 or current, found " + name);
}

py::list split_paragraph(const Punkt& punkt, const std::string& paragraph) {
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

py::bytes segment_lines(const Punkt& punkt, const py::buffer& text, bool keeps_indent) {
  const Array<uint8_t> array(text, "text");
  Column<uint8_t> out;
  {
    py::gil_scoped_release released;
    punkt.segment_lines(array.data, array.size, keeps_indent, out);
  }
  return as_bytes(out);
}

template <class Id>
py::tuple as_tuple(ExampleColumns<Id>&& c) {
  return py::make_tuple(view(std::move(c.ids)), view(std::move(c.ends)), view(std::move(c.first_lengths)),
                        view(std::move(c.positions)), view(std::move(c.labels)), view(std::move(c.mask_ends)),
                        view(std::move(c.next_labels)));
}

// Keeps the buffers alive that the examples are spans of.
class PyExampleSet {
 public:
  PyExampleSet(const py::buffer& ids, const py::buffer& sentence_ends, const py::buffer& document_ends,
               const ExampleRules& rules, const std::vector<uint32_t>& seed)
      : sentence_ends_(sentence_ends, "sentence_ends"), document_ends_(document_ends, "document_ends") {
    if (item_size(ids) == 2)
      make<uint16_t>(ids, rules, seed);
    else
      make<uint32_t>(ids, rules, seed);
  }

  size_t size() const {
    return std::visit([](const auto& set) { return set->size(); }, set_);
  }
  uint64_t tokens() const {
    return std::visit([](const auto& set) { return set->tokens(); }, set_);
  }
  uint64_t masked() const {
    return std::visit([](const auto& set) { return set->masked(); }, set_);
  }

  py::tuple batch(size_t start, size_t stop, size_t step) const {
    if (!step) throw py::value_error("step: expected 1 or more, found 0");
    return std::visit(
        [&](const auto& set) {
          auto columns = [&] {
            py::gil_scoped_release released;
            return set->batch(start, stop, step);
          }();
          return as_tuple(std::move(columns));
        },
        set_);
  }

 private:
  template <class Id>
  void make(const py::buffer& ids, const ExampleRules& rules, const std::vector<uint32_t>& seed) {
    auto array = std::make_shared<Array<Id>>(ids, "ids");
    check_ends(sentence_ends_, array->size, "sentence_ends");
    check_ends(document_ends_, sentence_ends_.size, "document_ends");
    for (size_t i = 0; i < array->size; ++i)
      if (array->data[i] >= rules.continues_word.size()) throw py::value_error("ids: an id is outside the vocabulary");
    ids_ = array;
    const DocumentView<Id> view{array->data, sentence_ends_.data, document_ends_.data,
                                static_cast<uint32_t>(document_ends_.size)};
    py::gil_scoped_release released;
    set_ = std::make_unique<ExampleSet<Id>>(view, rules, seed);
  }

  std::shared_ptr<void> ids_;
  Array<uint32_t> sentence_ends_, document_ends_;
  std::variant<std::unique_ptr<ExampleSet<uint16_t>>, std::unique_ptr<ExampleSet<uint32_t>>> set_;
};

template <class Id>
py::object encode_as(const py::buffer& ids, const py::buffer& ends, const py::buffer& first_lengths,
                    const py::buffer& positions, const py::buffer& labels, const py::buffer& mask_ends,
                    const py::buffer& next_labels, const Layout& layout) {
  const Array<Id> id_array(ids, "ids"), label_array(labels, "labels");
  const Array<uint32_t> end_array(ends, "ends"), first_array(first_lengths, "first_lengths"),
      mask_array(mask_ends, "mask_ends");
  const Array<uint16_t> position_array(positions, "positions");
  const Array<uint8_t> next_array(next_labels, "next_labels");
  const size_t count = end_array.size;
  if (first_array.size != count || mask_array.size != count || next_array.size != count ||
      position_array.size != label_array.size)
    throw py::value_error("batch: columns differ in length");
  check_ends(end_array, id_array.size, "ends");
  check_ends(mask_array, position_array.size, "mask_ends");
  const BatchView<Id> batch{count,           id_array.data,   label_array.data,    end_array.data,
                            first_array.data, mask_array.data, position_array.data, next_array.data};
  for (size_t i = 0; i < count; ++i) {
    const uint32_t length = batch.ends[i] - (i ? batch.ends[i - 1] : 0);
    const uint32_t masks = batch.mask_ends[i] - (i ? batch.mask_ends[i - 1] : 0);
    if (length > layout.max_seq_length || batch.first_lengths[i] > length || masks > layout.max_predictions)
      throw py::value_error("batch: example " + std::to_string(i) + " does not fit the layout");
  }
  if constexpr (sizeof(Id) > 2) {
    for (const auto* column : {&id_array, &label_array})
      for (size_t i = 0; i < column->size; ++i)
        if (column->data[i] >= kIdLimit)
          throw LossyExample("an id is negative or above " + std::to_string(kIdLimit - 1));
  }
  Column<uint8_t> out;
  {
    py::gil_scoped_release released;
    out.room(count * (5 * layout.max_seq_length + 10 * layout.max_predictions + 400) + 64);
    ExampleEncoder<Id>(layout, out).encode(batch);
  }
  return view(std::move(out));
}

Bytes as_block(const py::buffer_info& info) {
  const auto* p = static_cast<const uint8_t*>(info.ptr);
  return {p, p + info.size * info.itemsize};
}

// (canonical frames, bytes of the block used, records)
py::tuple canonicalize_block(const py::buffer& data) {
  const py::buffer_info info = data.request();
  Bytes block = as_block(info);
  Column<uint8_t> out;
  size_t records;
  {
    py::gil_scoped_release released;
    out.room(block.size() + 64);
    records = Canonicalizer().run(block, out);
  }
  return py::make_tuple(as_bytes(out), info.size * info.itemsize - static_cast<py::ssize_t>(block.size()), records);
}

// (columns of the examples, bytes of the block used)
py::tuple decode_block(const py::buffer& data, uint32_t max_seq_length, uint32_t max_predictions, size_t limit) {
  const py::buffer_info info = data.request();
  Bytes block = as_block(info);
  ExampleColumns<uint32_t> columns;
  {
    py::gil_scoped_release released;
    columns = ExampleDecoder({max_seq_length, max_predictions, false}).run(block, limit);
  }
  return py::make_tuple(as_tuple(std::move(columns)),
                        info.size * info.itemsize - static_cast<py::ssize_t>(block.size()));
}

}  // namespace

PYBIND11_MODULE(_kernels, m) {
  m.doc() = "C++ kernels of bertdata; each has a readable Python twin that specifies it.";

  bind_owned<uint8_t>(m, "Bytes");
  bind_owned<uint16_t>(m, "Shorts");
  bind_owned<uint32_t>(m, "Words");

  static py::exception<RecordError> record_error(m, "RecordError", PyExc_ValueError);
  py::register_exception<LossyExample>(m, "LossyExample", PyExc_ValueError);
  static py::exception<InvalidUtf8> invalid_utf8(m, "InvalidUtf8", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InvalidUtf8& error) {
      PyErr_SetObject(invalid_utf8.ptr(), py::int_(error.offset).ptr());
    } catch (const RecordError& error) {
      PyErr_SetObject(record_error.ptr(), py::make_tuple(error.record, error.what()).ptr());
    }
  });

  py::class_<PyTokenizer>(m, "Tokenizer")
      .def(py::init([](const std::vector<std::string>& tokens, const std::vector<uint32_t>& ids, uint32_t unknown,
                       bool lower_case, bool drops_unassigned, bool keeps_special_tokens, uint32_t max_word_chars) {
             if (tokens.size() != ids.size()) throw py::value_error("tokens and ids differ in length");
             const TokenRules rules{lower_case, drops_unassigned, keeps_special_tokens, max_word_chars};
             return std::unique_ptr<PyTokenizer>(new PyTokenizer{Tokenizer(tokens, ids, unknown, rules)});
           }),
           py::kw_only(), py::arg("tokens"), py::arg("ids"), py::arg("unknown"), py::arg("lower_case"),
           py::arg("drops_unassigned"), py::arg("keeps_special_tokens"), py::arg("max_word_chars"))
      .def("tokenize", &PyTokenizer::tokenize, "(ids, sentence_ends, document_ends) of a UTF-8 text");

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
           "The sentences of UTF-8 lines, one a line");

  py::class_<ExampleRules>(m, "ExampleRules")
      .def(py::init([](uint32_t max_seq_length, uint32_t max_predictions, uint32_t dupe_factor,
                       double masked_lm_prob, double short_seq_prob, bool whole_word_mask, bool fills_predictions,
                       bool skips_special_ids, uint8_t own_next_label, uint32_t cls, uint32_t sep, uint32_t mask,
                       std::vector<uint32_t> replacements, const py::bytes& continues_word) {
             if (max_seq_length < 5 || max_seq_length > 65535 || max_predictions > max_seq_length)
               throw py::value_error("max_seq_length or max_predictions out of range");
             if (replacements.empty()) throw py::value_error("replacements: expected at least one");
             const std::string_view flags = continues_word;
             return ExampleRules{max_seq_length,    max_predictions,   dupe_factor,     masked_lm_prob,
                                 short_seq_prob,    whole_word_mask,   fills_predictions, skips_special_ids,
                                 own_next_label,    cls,               sep,             mask,
                                 std::move(replacements), std::vector<uint8_t>(flags.begin(), flags.end())};
           }),
           py::kw_only(), py::arg("max_seq_length"), py::arg("max_predictions"), py::arg("dupe_factor"),
           py::arg("masked_lm_prob"), py::arg("short_seq_prob"), py::arg("whole_word_mask"),
           py::arg("fills_predictions"), py::arg("skips_special_ids"), py::arg("own_next_label"), py::arg("cls"),
           py::arg("sep"), py::arg("mask"), py::arg("replacements"), py::arg("continues_word"));

  py::class_<PyExampleSet>(m, "ExampleSet")
      .def(py::init<const py::buffer&, const py::buffer&, const py::buffer&, const ExampleRules&,
                    const std::vector<uint32_t>&>(),
           py::arg("ids"), py::arg("sentence_ends"), py::arg("document_ends"), py::arg("rules"), py::arg("seed"))
      .def("__len__", &PyExampleSet::size)
      .def_property_readonly("tokens", &PyExampleSet::tokens)
      .def_property_readonly("masked", &PyExampleSet::masked)
      .def("batch", &PyExampleSet::batch, py::arg("start"), py::arg("stop"), py::arg("step") = 1);

  m.def(
      "encode_tfrecord",
      [](const py::buffer& ids, const py::buffer& ends, const py::buffer& first_lengths, const py::buffer& positions,
         const py::buffer& labels, const py::buffer& mask_ends, const py::buffer& next_labels,
         uint32_t max_seq_length, uint32_t max_predictions, bool remask) {
        const Layout layout{max_seq_length, max_predictions, remask};
        const auto encode = item_size(ids) == 2 ? encode_as<uint16_t> : encode_as<uint32_t>;
        return encode(ids, ends, first_lengths, positions, labels, mask_ends, next_labels, layout);
      },
      "Framed canonical records of a batch's columns");

  m.def("canonicalize", &canonicalize_block, py::arg("block"), "(canonical frames, bytes used, records) of a block");
  m.def("decode_tfrecord", &decode_block, py::arg("block"), py::arg("max_seq_length"), py::arg("max_predictions"),
        py::arg("limit"), "(columns, bytes used) of the plain examples of a block");

  m.def(
      "crc32c",
      [](const py::buffer& data) {
        const py::buffer_info info = data.request();
        return crc32c(static_cast<const uint8_t*>(info.ptr), static_cast<size_t>(info.size * info.itemsize));
      },
      "CRC-32C of a buffer");

  py::class_<RandomStream>(m, "RandomStream")
      .def(py::init<const std::vector<uint32_t>&>(), py::arg("key"))
      .def("random", &RandomStream::random)
      .def("below", [](RandomStream& stream, uint32_t n) {
        if (!n) throw py::value_error("below: expected 1 or more, found 0");
        return stream.below(n);
      })
      .def("shuffle", [](RandomStream& stream, std::vector<uint32_t> items) {
        stream.shuffle(items.data(), static_cast<uint32_t>(items.size()));
        return items;
      }, "A shuffled copy of the items");
}
