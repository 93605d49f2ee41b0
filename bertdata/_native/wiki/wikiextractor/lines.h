// Keeps the lines of an article that are text, and the headings above them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wiki/characters.h"

namespace bertdata::wiki::wikiextractor {

// Decides line by line. A heading is written only when a line of text follows below it.
class Lines {
 public:
  // Appends the kept lines of an escaped text, separated by line breaks.
  static void append(std::string_view text, std::string& out) {
    Lines lines(out);
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = text.find('\n', begin);
      if (end == npos) end = text.size();
      lines.take(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

 private:
  explicit Lines(std::string& out) : out_(out) {}

  void take(std::string_view line) {
    if (line.empty() || skip_spaces(line, 0) == line.size()) return;
    switch (line[0]) {
      case '=':
        if (take_heading(line)) return;
        break;
      case '+':
        if (starts_with(line, 0, "++")) return take_title(line);
        break;
      case ':':
        line.remove_prefix(std::min(line.find_first_not_of(':'), line.size()));
        return add(line);
      case '*':
      case '#':
      case ';':
      case '{':
      case '|':
        return;
      default:
        break;
    }
    if (line.back() == '}' || (line[0] == '(' && line.back() == ')')) return;
    if (line.find_first_not_of(".-") != npos) keep(line);
  }

  // Takes a heading. The title is between two equal runs of at least two "=". Longer runs are tried first. Returns
  // false if this is no heading.
  bool take_heading(std::string_view line) {
    size_t most = 0;
    while (most < line.size() && line[most] == '=') ++most;
    for (size_t n = most; n >= 2; --n) {
      const std::string_view marks = line.substr(0, n);
      const size_t close = line.find(marks, n);
      if (close == npos) continue;
      const std::string_view title = strip(line.substr(n, close - n));
      while (!headings_.empty() && headings_.back().first >= n) headings_.pop_back();
      headings_.emplace_back(n, with_stop(title));
      return true;
    }
    return false;
  }

  // Takes a line ++title++ and drops two characters at both ends. Like a line that starts with ":", it does not cause
  // pending headings to be written.
  void take_title(std::string_view line) {
    for (int i = 0; i < 2; ++i) {
      if (!line.empty()) line.remove_prefix(decode_at(line, 0).length);
      if (!line.empty()) line.remove_suffix(decode_before(line, line.size()).length);
    }
    if (!line.empty()) add(with_stop(line));
  }

  static std::string with_stop(std::string_view text) {
    std::string out(text);
    if (!out.empty() && out.back() != '!' && out.back() != '?') out += '.';
    return out;
  }

  void keep(std::string_view line) {
    for (const auto& heading : headings_) add(heading.second);
    headings_.clear();
    add(line);
  }

  void add(std::string_view line) {
    if (!first_) out_ += '\n';
    first_ = false;
    out_.append(line);
  }

  std::string& out_;
  std::vector<std::pair<size_t, std::string>> headings_;  // headings that wait for a line of text, with their levels
  bool first_ = true;
};

}  // namespace bertdata::wiki::wikiextractor
