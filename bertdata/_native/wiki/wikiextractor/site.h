// Facts about the dump and the run that rendering needs.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "wiki/template_file.h"

namespace bertdata::wiki::wikiextractor {

// Facts about the dump and the day.
struct Site {
  std::string url_base;            // without the "/" at the end
  std::string template_namespace;  // without the ":"
  std::string year, month, day;
  std::unordered_set<std::string> namespaces;
  TemplateFile templates;

  // Finds a template's text. A redirect is followed once and changes the title. Returns false if there is none.
  bool find_template(std::string& title, std::string_view& text) const {
    if (const auto target = templates.bisect(TemplateFile::kRedirect, title)) title = std::string(*target);
    const std::optional<std::string_view> found = templates.bisect(TemplateFile::kTemplate, title);
    if (!found) return false;
    text = *found;
    return true;
  }
};

}  // namespace bertdata::wiki::wikiextractor
