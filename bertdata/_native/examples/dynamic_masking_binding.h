// Python binding of dynamic masking. The checked arguments here are shared by all maskers that mask at load.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/dynamic_masking.h"

namespace bertdata {

// Python buffer of integers that the kernel writes to. Throws ValueError if it is read-only.
template <class T>
struct Writable : Array<T> {
  T* out;

  Writable(const py::buffer& buffer, const char* name) : Array<T>(buffer, name) {
    if (this->info.readonly) throw py::value_error(std::string(name) + ": cannot be written to");
    out = static_cast<T*>(this->info.ptr);
  }
};

// Byte range of a buffer, used to check whether two buffers overlap.
struct Extent {
  const char* name;
  const uint8_t* begin;
  size_t bytes;

  template <class T>
  Extent(const char* name, const Array<T>& array)
      : name(name), begin(reinterpret_cast<const uint8_t*>(array.data)), bytes(array.size * sizeof(T)) {}

  bool overlaps(const Extent& other) const {
    return bytes && other.bytes && std::less<>()(begin, other.begin + other.bytes) &&
           std::less<>()(other.begin, begin + bytes);
  }
};

// Throws ValueError if one of the first `written` buffers, which the kernel writes to, overlaps any other buffer.
inline void check_apart(const std::vector<Extent>& buffers, size_t written) {
  for (size_t i = 0; i < written; ++i)
    for (size_t j = i + 1; j < buffers.size(); ++j)
      if (buffers[i].overlaps(buffers[j]))
        throw py::value_error(std::string(buffers[i].name) + " and " + buffers[j].name + ": the buffers overlap");
}

inline std::vector<double> as_rates(const py::buffer& buffer) {
  const py::buffer_info info = buffer.request();
  if (info.format != "d" || info.ndim != 1 || (info.size > 1 && info.strides[0] != info.itemsize))
    throw py::value_error("rates: expected a flat buffer of doubles");
  const double* data = static_cast<const double*>(info.ptr);
  std::vector<double> rates(data, data + info.size);
  for (const double rate : rates)
    if (!(rate > 0 && rate <= 1)) throw py::value_error("rates: expected shares above 0, at most 1");
  return rates;
}

// Checked arguments of a masker's mask() method.
// Example i has ids from starts[i] on and room for `most` positions and labels from i * most on. Its random stream is
// seeded with keys[i] and numbers[i].
struct LoadedExamples {
  Writable<int32_t> ids, positions, labels, counts;
  Array<int64_t> starts;
  Array<int32_t> lengths;
  Array<uint64_t> keys, numbers;
  std::optional<Array<uint8_t>> words;
  std::vector<double> rates;

  LoadedExamples(const py::buffer& ids, const py::buffer& starts, const py::buffer& lengths,
                 const py::buffer& positions, const py::buffer& labels, const py::buffer& counts,
                 const py::buffer& keys, const py::buffer& numbers, const py::buffer& rates,
                 const py::object& word_starts, uint32_t most, size_t vocabulary)
      : ids(ids, "ids"),
        positions(positions, "positions"),
        labels(labels, "labels"),
        counts(counts, "counts"),
        starts(starts, "starts"),
        lengths(lengths, "lengths"),
        keys(keys, "keys"),
        numbers(numbers, "numbers"),
        words(word_starts_of(word_starts, this->ids.size, false)),
        rates(as_rates(rates)) {
    const size_t count = size();
    for (const size_t size : {this->starts.size, this->lengths.size, this->keys.size, this->numbers.size,
                              this->rates.size()})
      if (size != count) throw py::value_error("examples: columns differ in length");
    for (const size_t size : {this->positions.size, this->labels.size})
      if (size != count * most) throw py::value_error("positions and labels: expected room for every mask");
    std::vector<Extent> buffers{{"ids", this->ids},       {"positions", this->positions}, {"labels", this->labels},
                                {"counts", this->counts}, {"starts", this->starts},       {"lengths", this->lengths},
                                {"keys", this->keys},     {"numbers", this->numbers}};
    if (words) buffers.emplace_back("word_starts", *words);
    check_apart(buffers, 4);
    check_ids(vocabulary);
  }

  size_t size() const { return counts.size; }
  int32_t* ids_of(size_t i) const { return ids.out + starts.data[i]; }
  const uint8_t* words_of(size_t i) const { return words ? words->data + starts.data[i] : nullptr; }
  uint32_t length(size_t i) const { return static_cast<uint32_t>(lengths.data[i]); }

 private:
  // Throws ValueError unless every id is in the vocabulary and the examples' ranges ascend without overlap.
  void check_ids(size_t vocabulary) const {
    int64_t free_from = 0;
    for (size_t i = 0; i < starts.size; ++i) {
      const int64_t start = starts.data[i], length = lengths.data[i];
      if (length < 0 || length > 65535 || start < free_from || start > static_cast<int64_t>(ids.size) - length)
        throw py::value_error("example " + std::to_string(i) + ": its ids are outside the buffer or another's");
      free_from = start + length;
      for (int64_t at = start; at < free_from; ++at)
        if (ids.data[at] < 0 || static_cast<size_t>(ids.data[at]) >= vocabulary)
          throw py::value_error("example " + std::to_string(i) + ": an id is outside the vocabulary");
    }
  }
};

// Defines the Python method `mask` of a masker. All arguments are checked before anything is written.
template <class Masker>
void bind_mask(py::class_<Masker>& masker) {
  masker.def(
      "mask",
      [](const Masker& self, const py::buffer& ids, const py::buffer& starts, const py::buffer& lengths,
         const py::buffer& positions, const py::buffer& labels, const py::buffer& counts, const py::buffer& keys,
         const py::buffer& numbers, const py::buffer& rates, const py::object& word_starts) {
        const LoadedExamples examples(ids, starts, lengths, positions, labels, counts, keys, numbers, rates, word_starts,
                                      self.most(), self.vocabulary());
        py::gil_scoped_release released;
        self.mask(examples);
      },
      py::kw_only(), py::arg("ids"), py::arg("starts"), py::arg("lengths"), py::arg("positions"), py::arg("labels"),
      py::arg("counts"), py::arg("keys"), py::arg("numbers"), py::arg("rates"), py::arg("word_starts") = py::none(),
      "Mask unmasked examples in place");
}

class PyDynamicMasker {
 public:
  explicit PyDynamicMasker(MaskingRules&& rules) : rules_(std::move(rules)) {}

  uint32_t most() const { return rules_.most; }
  size_t vocabulary() const { return rules_.is_special.size(); }

  void mask(const LoadedExamples& examples) const {
    DynamicMasker masker(rules_);
    for (size_t i = 0; i < examples.size(); ++i) {
      CounterStream stream(examples.keys.data[i], examples.numbers.data[i]);
      const uint32_t masks = masker.mask(examples.ids_of(i), examples.words_of(i), examples.length(i),
                                         examples.rates[i], stream, examples.positions.out + i * rules_.most,
                                         examples.labels.out + i * rules_.most);
      examples.counts.out[i] = static_cast<int32_t>(masks);
    }
  }

 private:
  MaskingRules rules_;
};

inline MaskingRules masking_rules(uint32_t most, uint32_t mask, uint64_t mask_limit, uint64_t random_limit,
                                  std::vector<uint32_t> replacements, const py::bytes& is_special,
                                  const py::bytes& continues_word, bool whole_words, bool draws_counts) {
  const std::string_view special = is_special, continues = continues_word;
  if (special.size() != continues.size() || special.size() > 0x7FFFFFFFu)
    throw py::value_error("is_special and continues_word: expected a byte for each id");
  if (most > 65535) throw py::value_error("most: expected at most 65535");
  if (replacements.empty()) throw py::value_error("replacements: expected at least one");
  if (std::max(mask, *std::max_element(replacements.begin(), replacements.end())) >= special.size())
    throw py::value_error("an id is outside the vocabulary");
  return MaskingRules{most,
                      mask,
                      mask_limit,
                      random_limit,
                      std::move(replacements),
                      std::vector<uint8_t>(special.begin(), special.end()),
                      std::vector<uint8_t>(continues.begin(), continues.end()),
                      whole_words,
                      draws_counts,
                      {}};
}

inline void bind_dynamic_masking(py::module_& m) {
  py::class_<PyDynamicMasker> masker(m, "DynamicMasker");
  masker.def(py::init([](uint32_t most, uint32_t mask, uint64_t mask_limit, uint64_t random_limit,
                       std::vector<uint32_t> replacements, const py::bytes& is_special,
                       const py::bytes& continues_word, bool whole_words, bool draws_counts,
                       std::vector<double> ngram_limits) {
             check_limits(ngram_limits);
             MaskingRules rules = masking_rules(most, mask, mask_limit, random_limit, std::move(replacements),
                                                is_special, continues_word, whole_words, draws_counts);
             rules.ngram_limits = std::move(ngram_limits);
             return PyDynamicMasker(std::move(rules));
           }),
           py::kw_only(), py::arg("most"), py::arg("mask"), py::arg("mask_limit"), py::arg("random_limit"),
           py::arg("replacements"), py::arg("is_special"), py::arg("continues_word"), py::arg("whole_words"),
           py::arg("draws_counts"), py::arg("ngram_limits") = std::vector<double>());
  bind_mask(masker);

  py::class_<CounterStream>(m, "CounterStream")
      .def(py::init<uint64_t, uint64_t>(), py::arg("key"), py::arg("example"))
      .def("word", &CounterStream::word)
      .def("below", [](CounterStream& stream, uint32_t limit) {
        if (!limit) throw py::value_error("below: expected 1 or more, found 0");
        return stream.below(limit);
      });
}

}  // namespace bertdata
