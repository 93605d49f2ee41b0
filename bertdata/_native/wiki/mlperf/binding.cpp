// Python binding of MLPerf's extractor.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "buffers.h"
#include "rooms.h"
#include "wiki/mlperf/extractor.h"

namespace bertdata {

namespace py = pybind11;

namespace {

using namespace wiki::mlperf;

// Decodes bytes to a Python str, also if they are not valid UTF-8.
py::str decoded(std::string_view text, const char* errors) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), errors);
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

std::string encoded(const py::handle& text, const char* errors) {
  if (!PyUnicode_Check(text.ptr())) throw py::type_error("expected a str");
  PyObject* made = PyUnicode_AsEncodedString(text.ptr(), "utf-8", errors);
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(made);
}

py::str as_str(std::string_view text) { return decoded(text, "surrogateescape"); }

// Returns a function that calls Python. It acquires the GIL, because the extractor runs without it.
Compute call_python(const py::object& compute) {
  return [compute = compute.ptr()](const char* function, const std::vector<std::string>& arguments) {
    py::gil_scoped_acquire acquired;
    py::list texts;
    for (const std::string& argument : arguments) texts.append(decoded(argument, "surrogatepass"));
    return encoded(py::reinterpret_borrow<py::object>(compute)(function, texts), "surrogatepass");
  };
}

// Reads (namespace, redirect, inside a text, id of the last page written or None).
ReaderState read_state(const py::tuple& state) {
  if (state.size() != 4) throw py::value_error("state: expected four items");
  const bool has_last = !state[3].is_none();
  return {encoded(state[0], "surrogateescape"), state[1].cast<bool>(), state[2].cast<bool>(), has_last,
          has_last ? encoded(state[3], "surrogateescape") : ""};
}

py::tuple leaving_state(const ReaderState& state) {
  return py::make_tuple(as_str(state.ns), state.redirect, state.inside_text,
                        state.has_last ? py::object(as_str(state.last_id)) : py::none());
}

py::object as_id(const FirstId& first) { return first.found ? py::object(as_str(first.id)) : py::none(); }

// The extractor, and the Python objects that it refers to.
class PyExtractor {
 public:
  // templates: None, or a buffer with a template file.
  PyExtractor(ExtractorSettings settings, py::object compute, const py::object& templates)
      : compute_(std::move(compute)),
        file_(templates.is_none() ? std::nullopt : std::make_optional<Array<uint8_t>>(templates, "templates")),
        extractor_(with_templates(std::move(settings))) {}

  py::tuple extract(const py::bytes& data, const py::tuple& before) const {
    const std::string_view block = data;
    ReaderState state = read_state(before);
    Articles found;
    {
      py::gil_scoped_release released;
      found = extractor_.extract(block, state);
    }
    py::list outcomes;
    for (const Outcome& outcome : found.outcomes)
      outcomes.append(py::make_tuple(as_str(outcome.reason), as_str(outcome.detail), outcome.size, outcome.begin,
                                     outcome.end));
    return py::make_tuple(py::bytes(found.text), outcomes, as_id(found.first), leaving_state(state));
  }

  py::tuple definitions(const py::bytes& data, const py::tuple& before) const {
    const std::string_view block = data;
    ReaderState state = read_state(before);
    Definitions found;
    {
      py::gil_scoped_release released;
      found = extractor_.definitions(block, state);
    }
    py::list templates, left_out;
    for (const Definition& definition : found.templates)
      templates.append(py::make_tuple("template", py::bytes(definition.title), py::bytes(definition.text)));
    for (const std::string& id : found.left_out) left_out.append(as_str(id));
    return py::make_tuple(templates, found.pages, left_out, as_id(found.first), leaving_state(state));
  }

 private:
  ExtractorSettings with_templates(ExtractorSettings settings) const {
    if (file_)
      settings.templates = Templates({reinterpret_cast<const char*>(file_->data), file_->size});
    return settings;
  }

  py::object compute_;
  std::optional<Array<uint8_t>> file_;  // must live as long as the extractor
  Extractor extractor_;
};

Site make_site(const std::string& url_base, const std::vector<std::pair<std::string, std::string>>& namespaces,
               const std::string& template_namespace, const std::string& day) {
  if (day.size() != 10 || day[4] != '-' || day[7] != '-')
    throw py::value_error("day: expected YYYY-MM-DD, found " + day);
  Site site;
  site.url_base = url_base;
  for (const auto& [name, key] : namespaces)
    site.namespaces[name] = key.find_first_not_of("0123456789") == std::string::npos ? key : "";
  if (!template_namespace.empty()) site.template_prefix = template_namespace + ":";
  site.year = day.substr(0, 4);
  site.month = day.substr(5, 2);
  site.day = day.substr(8, 2);
  return site;
}

std::unique_ptr<PyExtractor> make_extractor(const std::string& url_base,
                                            const std::vector<std::pair<std::string, std::string>>& namespaces,
                                            const std::string& template_namespace,
                                            const std::string& /* module_namespace */,
                                            const std::string& day, const py::object& templates,
                                            const std::vector<std::string>& skip_pages, uint64_t max_page_bytes,
                                            uint64_t max_work, const py::object& compute) {
  ExtractorSettings settings{make_site(url_base, namespaces, template_namespace, day),
                             {},
                             {skip_pages.begin(), skip_pages.end()},
                             max_page_bytes,
                             max_work,
                             call_python(compute)};
  return std::make_unique<PyExtractor>(std::move(settings), compute, templates);
}

}  // namespace

void bind_mlperf_extractor(py::module_& m) {
  py::class_<PyExtractor>(m, "MlperfExtractor")
      .def(py::init(&make_extractor), py::kw_only(), py::arg("url_base"), py::arg("namespaces"),
           py::arg("template_namespace"), py::arg("module_namespace"), py::arg("day"), py::arg("templates"),
           py::arg("skip_pages"), py::arg("max_page_bytes"), py::arg("max_work"), py::arg("compute"))
      .def("extract", &PyExtractor::extract, py::arg("data"), py::arg("state"),
           "Extract a block of whole pages: (articles, outcomes, first id, state after the block)")
      .def("definitions", &PyExtractor::definitions, py::arg("data"), py::arg("state"),
           "Read a block of whole pages: (definitions, template pages, ids of pages left out, first id, state after it)");
}

}  // namespace bertdata
