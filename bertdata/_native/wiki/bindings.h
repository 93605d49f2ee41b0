// Python bindings of the kernels for dumps: two for wiki mark-up and one for bzip2, each in a translation unit of its
// own.
#pragma once

#include <pybind11/pybind11.h>

namespace bertdata {

void bind_mlperf_extractor(pybind11::module_& m);
void bind_wikiextractor(pybind11::module_& m);
void bind_bzip2(pybind11::module_& m);
void bind_dump_pages(pybind11::module_& m);

}  // namespace bertdata
