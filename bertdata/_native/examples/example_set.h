// The Python face of made examples, of ids in 16 or 32 bits.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "buffers.h"

namespace bertdata {

// Base of an objective's examples: their number, their sums, and columns of a batch as arrays, by as_tuple.
template <template <class> class Examples>
class PyExampleSet {
 public:
  size_t size() const {
    return std::visit([](const auto& set) { return set->size(); }, set_);
  }
  uint64_t tokens() const {
    return std::visit([](const auto& set) { return set->tokens(); }, set_);
  }
  uint64_t masked() const {
    return std::visit([](const auto& set) { return set->masked(); }, set_);
  }
  uint64_t lost() const {
    return std::visit([](const auto& set) { return set->lost(); }, set_);
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

 protected:
  std::variant<std::unique_ptr<Examples<uint16_t>>, std::unique_ptr<Examples<uint32_t>>> set_;
};

}  // namespace bertdata
