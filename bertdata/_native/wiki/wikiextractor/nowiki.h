// Protects raw <nowiki> elements while a text is expanded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/scan.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Replaces <nowiki> elements by marks ("\0NOWIKI0\0") and puts them back later.
class NowikiMask {
 public:
  // Copies the text to `masked` with a mark in place of each <nowiki> element. Returns false, and copies nothing, if
  // there is none.
  bool mask(std::string_view text, std::string& masked) {
    if (find_mark(text, "<n", 0) == npos && find_mark(text, "<N", 0) == npos) return false;
    size_t behind = 0;
    for (size_t at = text.find('<'); at != npos; at = text.find('<', at)) {
      const size_t inside = end_of(text, at + 1, "nowiki");
      const size_t end = inside == npos ? npos : find_close(text, inside);
      if (inside != npos && end == npos) break;  // no later element is closed either
      if (end == npos) {
        ++at;
        continue;
      }
      masked.append(text, behind, at - behind).append(mark(elements_.size()));
      elements_.push_back(text.substr(at, end - at));
      behind = at = end;
    }
    if (elements_.empty()) return false;
    masked.append(text, behind, npos);
    return true;
  }

  // Puts the elements back wherever their marks are.
  void unmask(std::string& text, Work& work) const {
    std::string spare;
    for (size_t i = 0; i < elements_.size(); ++i) {
      work.spend(text.size());
      replace_all(text, mark(i), elements_[i], spare);
      work.grow(text.size());
    }
  }

 private:
  static std::string mark(size_t i) {
    std::string out(1, '\0');
    return out.append("NOWIKI").append(std::to_string(i)).append(1, '\0');
  }
  // Returns the end of the tag whose name is expected at pos, or npos.
  static size_t end_of(std::string_view text, size_t pos, std::string_view name) {
    const size_t end = match_name(text, pos, name);
    const size_t close = end == npos ? npos : skip_spaces(text, end);
    return close != npos && starts_with(text, close, ">") ? close + 1 : npos;
  }
  static size_t find_close(std::string_view text, size_t from) {
    for (size_t at = text.find("</", from); at != npos; at = text.find("</", at + 2))
      if (const size_t end = end_of(text, at + 2, "nowiki"); end != npos) return end;
    return npos;
  }

  std::vector<std::string_view> elements_;  // views into the masked text, which must outlive them
};

}  // namespace bertdata::wiki::wikiextractor
