// Facts of the dump and of the run that pages are rendered with.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "wiki/template_file.h"

namespace bertdata::wiki::wikiextractor {

struct Site {
  std::string url_base;            // without the last "/"
  std::string template_namespace;  // without ":"
  std::string year, month, day;
  std::unordered_set<std::string> namespaces;
  TemplateFile templates;

  // Whether there is a definition of that title. A redirect is followed once and changes the title.
  bool find_template(std::string& title, std::string_view& text) const {
    if (const auto target = templates.bisect(TemplateFile::kRedirect, title)) title = std::string(*target);
    const std::optional<std::string_view> found = templates.bisect(TemplateFile::kTemplate, title);
    if (!found) return false;
    text = *found;
    return true;
  }
};

}  // namespace bertdata::wiki::wikiextractor
