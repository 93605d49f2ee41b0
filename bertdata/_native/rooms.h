// The bindings that are translation units of their own, so that they are compiled at the same time. Each such file costs
// about four seconds for pybind11 alone. That is why the other bindings are headers which binding.cpp includes.
#pragma once

#include <pybind11/pybind11.h>

namespace bertdata {

void bind_examples(pybind11::module_& m);
void bind_records(pybind11::module_& m);
void bind_tokens(pybind11::module_& m);
void bind_mlperf_extractor(pybind11::module_& m);
void bind_wikiextractor(pybind11::module_& m);

}  // namespace bertdata
