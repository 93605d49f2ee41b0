// Replaces formulas and code by numbered placeholders.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wiki/mlperf/elements.h"

namespace bertdata::wiki::mlperf {

// The placeholders for elements of a single name.
class Placeholders {
 public:
  Placeholders(std::string_view name, std::string_view placeholder, Work& work)
      : name_(name), placeholder_(placeholder), work_(work) {}

  // Replaces element number k by "placeholder_k", and every equal text elsewhere as well.
  void replace(std::string& text, std::string& spare) {
    const std::vector<Span> elements = find(text);
    if (elements.empty()) return;
    if (!nested_) {
      replace_apart(text, elements, spare);
      return;
    }
    std::vector<std::string> found;
    for (const Span& element : elements) found.push_back(text.substr(element.begin, element.end - element.begin));
    for (size_t i = 0; i < found.size(); ++i) {
      work_.spend(text.size());
      replace_all(text, found[i], numbered(i), spare);
    }
  }

 private:
  std::string numbered(size_t i) const { return std::string(placeholder_) + "_" + std::to_string(i + 1); }

  // Fast way if no element contains the opening tag of another. Equal texts are then elements themselves, so a single
  // pass is enough.
  void replace_apart(std::string& text, const std::vector<Span>& elements, std::string& spare) const {
    const std::string_view in = text;
    std::unordered_map<std::string_view, size_t> first;
    size_t behind = 0;
    spare.clear();
    for (size_t i = 0; i < elements.size(); ++i) {
      const auto [begin, end] = elements[i];
      spare.append(in, behind, begin - behind);
      spare += numbered(first.emplace(in.substr(begin, end - begin), i).first->second);
      behind = end;
    }
    spare.append(in, behind, npos);
    text.swap(spare);
  }

  // Returns the end of the opening tag that begins at `at`, or npos.
  size_t opening_end(std::string_view text, size_t at) {
    const size_t name_end = match_name(text, skip_spaces(text, at + 1), name_);
    if (name_end == npos) return npos;
    const size_t behind = skip_spaces(text, name_end);
    if (behind < text.size() && text[behind] == '>') return behind + 1;
    if (!starts_with(text, name_end, " ")) return npos;
    const size_t close = close_.from(text, name_end + 1);
    if (close == npos || close == name_end + 1) return npos;
    return close + 1;
  }

  // Returns the first closing tag at `from` or later.
  Span closing_tag(std::string_view text, size_t from) {
    for (size_t at = text.find('<', from); at != npos; at = text.find('<', at + 1)) {
      size_t pos = skip_spaces(text, at + 1);
      if (pos >= text.size() || text[pos] != '/') continue;
      pos = match_name(text, skip_spaces(text, pos + 1), name_);
      if (pos == npos) continue;
      pos = skip_spaces(text, pos);
      if (pos < text.size() && text[pos] == '>') return {at, pos + 1};
    }
    return {};
  }

  bool holds_opening(std::string_view text) const {
    for (size_t at = text.find('<'); at != npos; at = text.find('<', at + 1))
      if (match_name(text, skip_spaces(text, at + 1), name_) != npos) return true;
    return false;
  }

  std::vector<Span> find(std::string_view text) {
    std::vector<Span> elements;
    for (size_t at = text.find('<'); at != npos;) {
      const size_t inside = opening_end(text, at);
      if (inside == npos) {
        at = text.find('<', at + 1);
        continue;
      }
      const Span close = closing_tag(text, inside);
      if (!close.found()) break;
      elements.push_back({at, close.end});
      nested_ = nested_ || holds_opening(text.substr(at + 1, close.begin - at - 1));
      at = text.find('<', close.end);
    }
    return elements;
  }

  std::string_view name_, placeholder_;
  Work& work_;
  NextAny<'>'> close_;
  bool nested_ = false;  // an element contains the opening tag of another
};

inline void insert_placeholders(std::string& text, std::string& spare, Work& work) {
  Placeholders("math", "formula", work).replace(text, spare);
  Placeholders("code", "codice", work).replace(text, spare);
}

}  // namespace bertdata::wiki::mlperf
