// Template definitions by full title.
#pragma once

#include <string_view>

#include "wiki/template_file.h"

namespace bertdata::wiki::mlperf {

// The definitions of a template file. If several have the same title, the last one counts.
class Templates {
 public:
  Templates() = default;
  explicit Templates(std::string_view file) : file_(file) {}

  bool empty() const { return file_.count(TemplateFile::kTemplate) == 0; }

  // Finds the definition of a title and sets `text`. Returns false if there is none.
  bool find(std::string_view title, std::string_view& text) const {
    uint64_t first = 0, last = file_.count(TemplateFile::kTemplate);
    while (first < last) {  // the first record with a greater title is in [first, last]
      const uint64_t middle = first + (last - first) / 2;
      if (title < file_.at(TemplateFile::kTemplate, middle).title)
        last = middle;
      else
        first = middle + 1;
    }
    if (first == 0) return false;
    const TemplateFile::Definition found = file_.at(TemplateFile::kTemplate, first - 1);
    text = found.text;
    return found.title == title;
  }

 private:
  TemplateFile file_;
};

}  // namespace bertdata::wiki::mlperf
