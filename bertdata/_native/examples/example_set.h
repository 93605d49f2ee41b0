// Python binding shared by all objectives: a set of examples with 16-bit or 32-bit ids.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "buffers.h"

namespace bertdata {

// Base class of an objective's examples in Python: counts, and the columns of a batch as a tuple of arrays (as_tuple).
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
