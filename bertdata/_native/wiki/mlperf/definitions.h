// Extracts the text that a template's page defines.
#pragma once

#include <string>
#include <string_view>

#include "wiki/entities.h"
#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// Removes everything from each opening mark to the next closing mark.
inline void remove_between(std::string& text, std::string_view open, std::string_view close) {
  std::string out;
  size_t behind = 0;
  for (size_t at = find_mark(text, open, 0); at != npos; at = find_mark(text, open, behind)) {
    const size_t end = find_mark(text, close, at + open.size());
    if (end == npos) break;
    out.append(text, behind, at - behind);
    behind = end + close.size();
  }
  if (!behind) return;
  out.append(text, behind, npos);
  text.swap(out);
}

// Removes the first unclosed noinclude tag (white space before its ">" is allowed) and everything after it.
inline void remove_unclosed_noinclude(std::string& text) {
  constexpr std::string_view kOpen = "<noinclude";
  for (size_t at = find_mark(text, kOpen, 0); at != npos; at = find_mark(text, kOpen, at + 1)) {
    const size_t end = skip_spaces(text, at + kOpen.size());
    if (end >= text.size() || text[end] != '>') continue;
    text.resize(at);
    return;
  }
}

// Returns the contents of the onlyinclude elements, joined.
inline std::string only_included(std::string_view text) {
  constexpr std::string_view kOpen = "<onlyinclude>", kClose = "</onlyinclude>";
  std::string out;
  size_t behind = 0;
  for (size_t at = find_mark(text, kOpen, 0); at != npos; at = find_mark(text, kOpen, behind)) {
    const size_t begin = at + kOpen.size(), end = find_mark(text, kClose, begin);
    if (end == npos) break;
    out.append(text, begin, end - begin);
    behind = end + kClose.size();
  }
  return out;
}

// Returns the text to store for a page's escaped text, or an empty string if there is nothing to store.
inline std::string definition_text(std::string_view escaped) {
  std::string text, spare;
  append_unescaped(escaped, Words::unicode11(), text);
  remove_between(text, "<!--", "-->");
  remove_between(text, "<noinclude>", "</noinclude>");
  remove_unclosed_noinclude(text);
  replace_all(text, "<noinclude/>", "", spare);
  if (std::string only = only_included(text); !only.empty()) return only;
  replace_all(text, "<includeonly>", "", spare);
  replace_all(text, "</includeonly>", "", spare);
  return text;
}

}  // namespace bertdata::wiki::mlperf
