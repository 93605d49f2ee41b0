// Python binding of ALBERT's sentence-order examples.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "buffers.h"
#include "examples/bert_binding.h"
#include "examples/sop.h"

namespace bertdata {

template <class Id>
py::tuple as_tuple(SopColumns<Id>&& c) {
  BertColumns<Id>& pairs = c.pairs;
  return py::make_tuple(view(std::move(pairs.ids)), view(std::move(pairs.ends)), view(std::move(pairs.first_lengths)),
                        view(std::move(c.word_starts)), view(std::move(pairs.positions)),
                        view(std::move(pairs.labels)), view(std::move(pairs.mask_ends)),
                        view(std::move(pairs.next_labels)));
}

inline void bind_sop(py::module_& m) { bind_pairs<SopExamples>(m, "SopExamples"); }

}  // namespace bertdata
