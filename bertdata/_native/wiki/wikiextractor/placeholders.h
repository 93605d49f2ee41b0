// Replaces formulas and code by numbered words.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

class Placeholders {
 public:
  static void replace(std::string& text, std::string& spare, Work& work) {
    if (text.find('<') == npos) return;
    replace(text, spare, "math", "formula", work);
    replace(text, spare, "code", "codice", work);
  }

 private:
  // Numbers the elements in order and replaces each by `word` and its number. A text equal to a numbered element gets
  // the same number.
  static void replace(std::string& text, std::string& spare, std::string_view name, std::string_view word, Work& work) {
    const std::vector<Span> found = find(text, name);
    if (found.empty()) return;
    const std::string prefix = std::string(word) + "_";
    for (const Span& span : found) {
      const std::string_view element = std::string_view(text).substr(span.begin, span.end - span.begin);
      if (match_open(element, element.find('<', 1), name, true) != npos)
        return replace_anywhere(text, spare, found, prefix, work);
    }
    // No element contains the opening tag of another, so a single pass is enough.
    std::unordered_map<std::string_view, size_t> numbers;
    spare.clear();
    size_t behind = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string_view element = std::string_view(text).substr(found[i].begin, found[i].end - found[i].begin);
      const size_t number = numbers.emplace(element, i + 1).first->second;
      spare.append(text, behind, found[i].begin - behind).append(prefix).append(std::to_string(number));
      behind = found[i].end;
    }
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Slow way: an element can occur inside another, so the whole text is searched for each element.
  static void replace_anywhere(std::string& text, std::string& spare, const std::vector<Span>& found,
                               const std::string& prefix, Work& work) {
    std::vector<std::string> elements;
    for (const Span& span : found) elements.emplace_back(text, span.begin, span.end - span.begin);
    for (size_t i = 0; i < elements.size(); ++i) {
      work.spend(text.size());
      replace_all(text, elements[i], prefix + std::to_string(i + 1), spare);
    }
  }

  static std::vector<Span> find(std::string_view text, std::string_view name) {
    std::vector<Span> found;
    const size_t last = text.rfind('>');
    for (size_t at = text.find('<'); at != npos && last != npos && at < last; at = text.find('<', at)) {
      const size_t inside = match_open(text, at, name, false);
      const size_t end = inside == npos ? npos : find_close(text, inside, name);
      if (inside != npos && end == npos) break;  // no later element is closed either
      if (end != npos) found.push_back({at, end});
      at = end == npos ? at + 1 : end;
    }
    return found;
  }

  // Returns the end of the opening tag at pos, or npos. If `anywhere`, the tag may also come later.
  static size_t match_open(std::string_view text, size_t pos, std::string_view name, bool anywhere) {
    for (; pos != npos; pos = text.find('<', pos + 1)) {
      const size_t end = match_name(text, skip_spaces(text, pos + 1), name);
      if (end != npos) {
        const size_t bare = skip_spaces(text, end);
        if (starts_with(text, bare, ">")) return bare + 1;
        const size_t close = starts_with(text, end, " ") ? text.find('>', end + 1) : npos;
        if (close != npos && close > end + 1) return close + 1;
      }
      if (!anywhere) break;
    }
    return npos;
  }

  static size_t find_close(std::string_view text, size_t from, std::string_view name) {
    for (size_t at = text.find('<', from); at != npos; at = text.find('<', at + 1)) {
      size_t pos = skip_spaces(text, at + 1);
      if (!starts_with(text, pos, "/")) continue;
      pos = match_name(text, skip_spaces(text, pos + 1), name);
      const size_t close = pos == npos ? npos : skip_spaces(text, pos);
      if (close != npos && starts_with(text, close, ">")) return close + 1;
    }
    return npos;
  }
};

}  // namespace bertdata::wiki::wikiextractor
