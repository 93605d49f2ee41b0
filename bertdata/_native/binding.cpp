// The Python module of the kernels, and the bindings of the rooms that compile fast. Kernels hold no Python objects and
// run without the GIL.
#include <pybind11/pybind11.h>

#include "buffers.h"
#include "io/md5_binding.h"
#include "loaders/modernbert_binding.h"
#include "rooms.h"
#include "text/ngram_binding.h"
#include "text/punkt_binding.h"
#include "unicode/unicode.h"
#include "wiki/bzip2/bzip2_binding.h"
#include "wiki/dump_binding.h"

namespace py = pybind11;
using namespace bertdata;

PYBIND11_MODULE(_kernels, m) {
  m.doc() = "C++ kernels of bertdata; each has a readable Python twin that specifies it.";

  bind_owned<uint8_t>(m, "Bytes");
  bind_owned<uint16_t>(m, "Shorts");
  bind_owned<uint32_t>(m, "Words");
  bind_owned<uint64_t>(m, "Longs");

  static py::exception<InvalidUtf8> invalid_utf8(m, "InvalidUtf8", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InvalidUtf8& error) {
      PyErr_SetObject(invalid_utf8.ptr(), py::int_(error.offset).ptr());
    }
  });

  bind_examples(m);
  bind_records(m);
  bind_tokens(m);
  bind_mlperf_extractor(m);
  bind_wikiextractor(m);
  bind_bzip2(m);
  bind_dump_pages(m);
  bind_md5(m);
  bind_modernbert(m);
  bind_ngrams(m);
  bind_punkt(m);
}
