// Python binding of the objectives' examples, of masking, and of the random stream that they share.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "examples/bert_binding.h"
#include "examples/dynamic_masking_binding.h"
#include "examples/electra_binding.h"
#include "examples/fairseq_binding.h"
#include "examples/mlm_binding.h"
#include "examples/mt19937.h"
#include "examples/sop_binding.h"
#include "examples/span_binding.h"
#include "examples/take_binding.h"
#include "rooms.h"

namespace bertdata {

void bind_examples(py::module_& m) {
  bind_bert(m);
  bind_dynamic_masking(m);
  bind_electra(m);
  bind_fairseq(m);
  bind_mlm(m);
  bind_sop(m);
  bind_span(m);
  bind_take(m);

  py::class_<RandomStream>(m, "RandomStream")
      .def(py::init([](const std::vector<uint32_t>& key) {
             check_seed(key);
             return RandomStream(key);
           }),
           py::arg("key"))
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

}  // namespace bertdata
