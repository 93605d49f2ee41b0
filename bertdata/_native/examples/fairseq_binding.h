// Python binding of fairseq's masks.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "buffers.h"
#include "examples/dynamic_masking_binding.h"
#include "examples/fairseq_masks.h"

namespace bertdata {

// Masks examples at load. The key of an example is the seed of its random stream.
class PyFairseqMasker {
 public:
  PyFairseqMasker(FairseqRules&& rules, bool draws_pcg) : rules_(std::move(rules)), draws_pcg_(draws_pcg) {}

  uint32_t most() const { return rules_.most; }
  size_t vocabulary() const { return rules_.vocabulary; }

  void mask(const LoadedExamples& examples) const {
    draws_pcg_ ? mask_each<PcgStream>(examples) : mask_each<FairseqTwister>(examples);
  }

 private:
  template <class Stream>
  void mask_each(const LoadedExamples& examples) const {
    FairseqMasker masker(rules_);
    for (size_t i = 0; i < examples.size(); ++i) {
      Stream stream(examples.keys.data[i]);
      const size_t first = i * rules_.most;
      examples.counts.out[i] = static_cast<int32_t>(
          masker.mask(examples.ids_of(i), examples.length(i), examples.rates[i], stream,
                      examples.positions.out + first, examples.labels.out + first));
    }
  }

  FairseqRules rules_;
  bool draws_pcg_;
};

inline void bind_fairseq(py::module_& m) {
  py::class_<PyFairseqMasker> masker(m, "FairseqMasker");
  masker.def(py::init([](uint32_t most, uint32_t mask, double random_share, double kept_share,
                         std::vector<double> limits, const py::bytes& begins_word, uint32_t multiple, bool draws_pcg) {
               if (most > 65535) throw py::value_error("most: expected at most 65535");
               if (multiple < 1 || multiple > 65535) throw py::value_error("multiple: expected 1 to 65535");
               if (limits.empty() || !std::is_sorted(limits.begin(), limits.end()) || !(limits.back() >= 1))
                 throw py::value_error("limits: expected ascending shares, the last one 1");
               const size_t vocabulary = limits.size();
               if (vocabulary > 0x7FFFFFFFu || mask >= vocabulary)
                 throw py::value_error("an id is outside the vocabulary");
               const std::string_view begins = begins_word;
               if (!begins.empty() && begins.size() != vocabulary)
                 throw py::value_error("begins_word: expected a byte for each id");
               return PyFairseqMasker(FairseqRules{most, mask, random_share, kept_share, std::move(limits),
                                                   {begins.begin(), begins.end()}, vocabulary, multiple},
                                      draws_pcg);
             }),
             py::kw_only(), py::arg("most"), py::arg("mask"), py::arg("random_share"), py::arg("kept_share"),
             py::arg("limits"), py::arg("begins_word"), py::arg("multiple"), py::arg("draws_pcg"));
  bind_mask(masker);
}

}  // namespace bertdata
