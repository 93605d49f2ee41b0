// Keeps the lines of an article that are text. Headings, lists, tables and indented lines are dropped.
#pragma once

#include <string>
#include <string_view>

#include "wiki/characters.h"

namespace bertdata::wiki::mlperf {

// Decides line by line. Some decisions depend on the lines before: the first line after a list is always kept, and so
// is an indented line after a heading.
class LineFilter {
 public:
  explicit LineFilter(std::string& out) : out_(out) {}

  // Takes the next line, without its line break.
  void take(std::string_view line) {
    if (line.empty()) return take_empty();
    if (starts_with(line, 0, "==") && line.find("==", 2) != npos) {
      heading_pending_ = true;
      in_list_ = false;
      return;
    }
    if (starts_with(line, 0, "++")) return take_marked_title(line);
    const char first = line.front(), last = line.back();
    if (first == ':') return;
    if (first == '*' || first == '#' || first == ';') {
      in_list_ = true;
    } else if (in_list_) {
      add(line);
      in_list_ = false;
    } else if (first == '{' || first == '|' || last == '}') {
    } else if ((first == '(' && last == ')') || line.find_first_not_of(".-") == npos) {
    } else if (heading_pending_) {
      add(line);
      heading_pending_ = false;
    } else if (first != ' ') {
      add(line);
    }
  }

 private:
  void add(std::string_view line) {
    out_ += line;
    out_ += '\n';
    any_ = true;
    last_empty_ = line.empty();
  }

  void take_empty() {
    if (in_list_ || (any_ && !last_empty_)) add({});
    in_list_ = false;
  }

  // Takes a line ++title++ and drops two characters at both ends. The title gets a full stop unless it ends with ! or
  // ?
  void take_marked_title(std::string_view line) {
    line.remove_prefix(2);
    for (int i = 0; i < 2 && !line.empty(); ++i) line.remove_suffix(decode_before(line, line.size()).length);
    if (line.empty()) return;
    const bool ends = line.back() == '!' || line.back() == '?';
    std::string title(line);
    if (!ends) title += '.';
    add(title);
  }

  std::string& out_;
  bool in_list_ = false, heading_pending_ = false, any_ = false, last_empty_ = false;
};

// Appends the lines of the text that are kept, each with a line break.
inline void append_kept_lines(std::string_view text, std::string& out) {
  LineFilter filter(out);
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != npos; end = text.find('\n', begin)) {
    filter.take(text.substr(begin, end - begin));
    begin = end + 1;
  }
  filter.take(text.substr(begin));
}

}  // namespace bertdata::wiki::mlperf
