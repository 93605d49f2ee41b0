// Finds template pages in a block, and the text or redirect that each defines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/entities.h"
#include "wiki/wikiextractor/page.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// A template definition. Title and text are as in the template file. The text of a redirect is its target.
struct Definition {
  bool is_redirect;
  std::string title, text;
};

// Calls take(page) for each whole page that contains the mark. The time is linear in the data, however many marks
// there are.
template <class Take>
void find_marked_pages(std::string_view data, std::string_view mark, Take&& take) {
  size_t behind = 0;
  for (size_t at = find_mark(data, mark, 0); at != npos; at = find_mark(data, mark, behind)) {
    const size_t start = data.substr(behind, at - behind).rfind("<page");
    const size_t begin = start == npos ? npos : behind + start;
    behind = at + 1;
    const PageTag opening = begin == npos ? PageTag{} : match_page_tag(data, begin);
    const PageTag closing = opening.found() ? find_page_tag(data, opening.end) : PageTag{};
    if (!closing.found() || !closing.closing || closing.begin <= at) continue;
    behind = closing.end;
    take(data.substr(begin, closing.end - begin));
  }
}

// Extracts what a template's page defines.
class DefinitionText {
 public:
  // Returns the target if the text's first line is a redirect.
  static std::optional<std::string_view> find_target(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    size_t pos = npos;
    for (std::string_view word : {"redirect", "\xDA\x86\xD9\x88\xD8\xB1\xD9\x8A\xD9\x88",
                                  "\xD8\xB1\xD8\xAC\xD9\x88\xD8\xB9_\xD9\x85\xDA\xA9\xD8\xB1\xD8\xB1"})
      if (starts_with(line, 0, "#") && match_name(line, 1, word) != npos) pos = match_name(line, 1, word);
    if (pos == npos || !Words::unicode14().is_edge(line, pos)) return std::nullopt;
    for (size_t open = line.find("[[", pos); open != npos; open = line.find("[[", open + 1)) {
      const size_t close = line.find(']', open + 2);
      if (close == npos) break;
      if (starts_with(line, close, "]]")) return line.substr(open + 2, close - open - 2);
    }
    return std::nullopt;
  }

  // Returns what a call of the template inserts.
  static std::string included(std::string_view escaped) {
    std::string text, spare;
    append_unescaped(escaped, Words::unicode14(), text);
    replace_surrogates(text);
    drop(text, spare, "<!--", "-->", false);
    drop(text, spare, "<noinclude>", "</noinclude>", true);
    drop_rest(text);
    drop_each(text, spare, {"<noinclude/>\n", "<noinclude/>"});
    if (std::string only = contents(text, "<onlyinclude>", "</onlyinclude>"); !only.empty()) return only;
    drop_each(text, spare, {"<includeonly>", "</includeonly>"});
    return text;
  }

 private:
  // Replaces lone surrogates by U+FFFD, because a UTF-8 file cannot contain them.
  static void replace_surrogates(std::string& text) {
    if (!has_surrogate(text)) return;
    for (size_t at = text.find('\xED'); at != npos; at = text.find('\xED', at + 1))
      if (at + 2 < text.size() && static_cast<uint8_t>(text[at + 1]) >= 0xA0) text.replace(at, 3, "\xEF\xBF\xBD");
  }

  // Drops what the marks enclose, and if line_end is true also a line break after it.
  static void drop(std::string& text, std::string& spare, std::string_view open, std::string_view close,
                   bool line_end) {
    size_t behind = 0;
    for (size_t at = find_mark(text, open, 0); at != npos; at = find_mark(text, open, behind)) {
      const size_t end = find_mark(text, close, at + open.size());
      if (end == npos) break;
      if (behind == 0) spare.clear();
      spare.append(text, behind, at - behind);
      behind = end + close.size();
      if (line_end && starts_with(text, behind, "\n")) ++behind;
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Drops the marks, which begin with "<", in a single pass. A mark that only forms when another one is dropped stays.
  static void drop_each(std::string& text, std::string& spare, std::initializer_list<std::string_view> marks) {
    spare.clear();
    size_t behind = 0;
    for (size_t at = text.find('<'); at != npos; at = text.find('<', at)) {
      size_t end = at;
      for (std::string_view mark : marks)
        if (end == at && starts_with(text, at, mark)) end = at + mark.size();
      if (end > at) {
        spare.append(text, behind, at - behind);
        behind = at = end;
      } else {
        ++at;
      }
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Drops everything from an unclosed <noinclude> on.
  static void drop_rest(std::string& text) {
    constexpr std::string_view kOpen = "<noinclude";
    for (size_t at = find_mark(text, kOpen, 0); at != npos; at = find_mark(text, kOpen, at + 1))
      if (starts_with(text, skip_spaces(text, at + kOpen.size()), ">")) return text.resize(at);
  }

  // Returns the contents of all elements, each without a line break at its start and end.
  static std::string contents(std::string_view text, std::string_view open, std::string_view close) {
    std::string out;
    for (size_t at = find_mark(text, open, 0); at != npos;) {
      size_t begin = at + open.size(), end = find_mark(text, close, begin);
      if (end == npos) break;
      at = find_mark(text, open, end + close.size());
      if (begin < end && text[begin] == '\n') ++begin;
      if (begin < end && text[end - 1] == '\n') --end;
      out.append(text, begin, end - begin);
    }
    return out;
  }
};

}  // namespace bertdata::wiki::wikiextractor
