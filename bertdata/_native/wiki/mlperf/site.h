// Facts about the wiki and the day that expansion needs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wiki/mlperf/case_mapping.h"

namespace bertdata::wiki::mlperf {

// A function that Python computes. Parameters: its name and its arguments as text.
using Compute = std::function<std::string(const char* function, const std::vector<std::string>& arguments)>;

// Names are XML-escaped, as in the dump. Prefixes include the ":".
struct Site {
  std::string url_base;
  std::unordered_map<std::string, std::string> namespaces;  // namespace key by name
  std::string template_prefix;
  std::string year, month, day;

  const std::string* namespace_key(std::string_view name) const {
    const auto found = namespaces.find(std::string(name));
    return found == namespaces.end() ? nullptr : &found->second;
  }
};

// Returns the full title of the page that a call's name refers to. ":x" is the page x. "x:y" stays unchanged if x is a
// namespace. Any other name is a template, and its first character is capitalised.
inline std::string called_title(std::string_view name, const Site& site) {
  if (!name.empty() && name[0] == ':') return std::string(name.substr(1));
  const size_t colon = name.find(':');
  if (colon != npos && site.namespace_key(name.substr(0, colon))) return std::string(name);
  return site.template_prefix + upper_first(name);
}

// Values of magic words on a page. `title` is as in the dump.
class MagicWords {
 public:
  MagicWords(const Site& site, std::string_view title) : site_(site), title_(title) {
    const size_t colon = title.find(':');
    if (colon != npos) namespace_ = title.substr(0, colon);
    page_ = colon == npos ? title : title.substr(colon + 1);
  }

  // Returns the value of a magic word, or nullopt for any other name.
  std::optional<std::string_view> value(std::string_view name) const {
    if (name == "!") return "|";
    // All names below begin with B to S and have at least 8 characters, so most names are rejected here.
    if (name.size() < 8 || name[0] < 'B' || name[0] > 'S') return std::nullopt;
    if (name == "PAGENAME") return page_;
    if (name == "FULLPAGENAME") return title_;
    if (name == "BASEPAGENAME") return page_.substr(0, page_.rfind('/'));
    if (name == "SUBPAGENAME") return sub_page();
    if (name == "ROOTPAGENAME") return page_.substr(0, page_.find('/'));
    if (name == "NAMESPACE") return namespace_;
    if (name == "NAMESPACENUMBER") return namespace_number();
    if (name == "CURRENTYEAR") return site_.year;
    if (name == "CURRENTMONTH") return site_.month;
    if (name == "CURRENTDAY") return site_.day;
    if (name == "CURRENTHOUR") return "00";
    if (name == "CURRENTTIME") return "00:00:00";
    return std::nullopt;
  }

 private:
  std::string_view sub_page() const {
    const size_t slash = page_.rfind('/');
    return slash == npos ? "" : page_.substr(slash + 1);
  }
  std::string_view namespace_number() const {
    const std::string* key = site_.namespace_key(namespace_);
    return key ? std::string_view(*key) : "0";
  }

  const Site& site_;
  std::string_view title_, namespace_, page_;
};

}  // namespace bertdata::wiki::mlperf
