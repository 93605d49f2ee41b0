// Removes the marks of bold and italics, or replaces them by quotation marks.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::wikiextractor {

class Quotes {
 public:
  static void replace(std::string& text, std::string& spare) {
    if (find_mark(text, "''", 0) != npos) {
      replace_pairs(text, "'''''", "", spare);
      replace_pairs(text, "'''", "", spare);
      replace_quoted(text, "''\"", "\"''", spare);
      replace_pairs(text, "''", "\"", spare);
      replace_quoted(text, "\"\"", "\"\"", spare);
      replace_all(text, "'''", "", spare);
      replace_all(text, "''", "\"", spare);
    } else {
      replace_quoted(text, "\"\"", "\"\"", spare);
    }
  }

 private:
  // Replaces pairs of marks within a line by `with`. A mark is always closed by the next mark.
  static void replace_pairs(std::string& text, std::string_view mark, std::string_view with, std::string& spare) {
    size_t open = find_mark(text, mark, 0);
    if (open == npos) return;
    size_t behind = 0;
    spare.clear();
    while (open != npos) {
      const size_t begin = open + mark.size();
      const size_t close = find_mark(text, mark, begin);
      if (close == npos) break;
      const std::string_view content = std::string_view(text).substr(begin, close - begin);
      const size_t line_end = content.rfind('\n');
      if (line_end != npos) {
        open = find_mark(text, mark, begin + content.find('\n') + 1);
        continue;
      }
      spare.append(text, behind, open - behind).append(with).append(content).append(with);
      behind = close + mark.size();
      open = find_mark(text, mark, behind);
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Puts what is between `open` and `close` into quotation marks if it contains none.
  static void replace_quoted(std::string& text, std::string_view open, std::string_view close, std::string& spare) {
    size_t behind = 0;
    for (size_t at = find_mark(text, open, 0); at != npos; at = find_mark(text, open, at)) {
      const size_t begin = at + open.size(), end = text.find('"', begin);
      if (end == npos) break;
      if (!starts_with(text, end, close)) {
        ++at;
        continue;
      }
      if (behind == 0) spare.clear();
      spare.append(text, behind, at - behind).append("\"").append(text, begin, end - begin).append("\"");
      behind = at = end + close.size();
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }
};

}  // namespace bertdata::wiki::wikiextractor
