// Python binding of the wikiextractor 3.1.0 kernel.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "buffers.h"
#include "rooms.h"
#include "wiki/wikiextractor/extractor.h"

namespace bertdata {

namespace py = pybind11;

namespace {

using namespace wiki::wikiextractor;

py::str as_str(const std::string& text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace");
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

// Reads the last item of the state, the id of the article before. The other items are passed through unchanged.
Id read_last_id(const py::tuple& state) {
  if (state.size() != 4) throw py::value_error("state: expected four items");
  return state[3].cast<Id>();
}

py::object as_object(const Id& id) { return id ? py::object(as_str(*id)) : py::none(); }

py::tuple leaving_state(const py::tuple& state, const py::object& last_id) {
  return py::make_tuple(state[0], state[1], state[2], last_id);
}

// The extractor, and the Python buffer that it refers to.
class PyWikiextractor {
 public:
  // templates: None, or a buffer with a template file.
  PyWikiextractor(ExtractorSettings settings, const py::object& templates)
      : file_(templates.is_none() ? std::nullopt : std::make_optional<Array<uint8_t>>(templates, "templates")),
        extractor_(with_templates(std::move(settings))) {}

  py::tuple extract(const py::bytes& data, const py::tuple& state) const {
    const std::string_view block = data;
    Id last_id = read_last_id(state);
    Articles found;
    {
      py::gil_scoped_release released;
      found = extractor_.extract(block, std::move(last_id));
    }
    py::list outcomes;
    for (const Outcome& outcome : found.outcomes)
      outcomes.append(py::make_tuple(as_str(outcome.reason), as_str(outcome.detail), outcome.size, outcome.begin,
                                     outcome.end));
    return py::make_tuple(py::bytes(found.text), outcomes, as_object(found.first_id),
                          leaving_state(state, as_object(found.last_id)));
  }

  py::tuple definitions(const py::bytes& data, const py::tuple& state) const {
    const std::string_view block = data;
    read_last_id(state);
    Definitions found;
    {
      py::gil_scoped_release released;
      found = extractor_.definitions(block);
    }
    py::list definitions, left_out;
    for (const Definition& each : found.found)
      definitions.append(py::make_tuple(each.is_redirect ? "redirect" : "template", py::bytes(each.title),
                                        py::bytes(each.text)));
    for (const std::string& id : found.left_out) left_out.append(as_str(id));
    return py::make_tuple(definitions, found.pages, left_out, py::none(), state);
  }

 private:
  ExtractorSettings with_templates(ExtractorSettings settings) const {
    if (file_) {
      const std::string_view bytes(reinterpret_cast<const char*>(file_->data), file_->size);
      settings.site.templates = wiki::TemplateFile(bytes);
    }
    return settings;
  }

  std::optional<Array<uint8_t>> file_;  // must live as long as the extractor
  Extractor extractor_;
};

std::unique_ptr<PyWikiextractor> make_extractor(const std::string& url_base,
                                                const std::vector<std::pair<std::string, std::string>>& namespaces,
                                                const std::string& template_namespace,
                                                const std::string& /* module_namespace */, const std::string& day,
                                                const py::object& templates, const std::vector<std::string>& skip_pages,
                                                uint64_t max_page_bytes, uint64_t max_work) {
  if (day.size() != 10 || day[4] != '-' || day[7] != '-')
    throw py::value_error("day: expected YYYY-MM-DD, found " + day);
  ExtractorSettings settings;
  settings.site.url_base = url_base;
  settings.site.template_namespace = template_namespace;
  for (const auto& [name, key] : namespaces) settings.site.namespaces.insert(name);
  settings.site.year = day.substr(0, 4);
  settings.site.month = day.substr(5, 2);
  settings.site.day = day.substr(8, 2);
  settings.skip_pages = {skip_pages.begin(), skip_pages.end()};
  settings.max_page_bytes = max_page_bytes;
  settings.max_work = max_work;
  return std::make_unique<PyWikiextractor>(std::move(settings), templates);
}

}  // namespace

void bind_wikiextractor(py::module_& m) {
  py::class_<PyWikiextractor>(m, "Wikiextractor")
      .def(py::init(&make_extractor), py::kw_only(), py::arg("url_base"), py::arg("namespaces"),
           py::arg("template_namespace"), py::arg("module_namespace"), py::arg("day"), py::arg("templates"),
           py::arg("skip_pages"), py::arg("max_page_bytes"), py::arg("max_work"))
      .def("extract", &PyWikiextractor::extract, py::arg("data"), py::arg("state"),
           "Extract a block of whole pages: (articles, outcomes, first id, state after the block)")
      .def("definitions", &PyWikiextractor::definitions, py::arg("data"), py::arg("state"),
           "Read a block of whole pages: (definitions, template pages, ids of pages left out, first id, state after it)");
}

}  // namespace bertdata
