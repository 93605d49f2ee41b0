// Drops comments and those tags whose content stays.
#pragma once

#include <string>
#include <string_view>

#include "wiki/mlperf/tag_names.h"

namespace bertdata::wiki::mlperf {

// Finds the ranges to drop. All are found in the same text: a range that begins inside a dropped range is skipped, and
// a comment that is skipped still hides the comments inside it.
class TagCleaner {
 public:
  TagCleaner(std::string_view text, const Words& words) : text_(text), words_(words) {}

  void run(std::string& out) {
    out.clear();
    size_t behind = 0;
    for (size_t at = text_.find('<'); at != npos; at = text_.find('<', at + 1)) {
      size_t end = comment_end(at);
      // comment_end() is called first even inside a dropped range, because it remembers where the comment ends.
      if (at < behind) continue;
      if (!end) end = tag_end(at);
      if (!end) continue;
      out.append(text_, behind, at - behind);
      behind = end;
    }
    out.append(text_, behind, npos);
  }

 private:
  // Returns the end of the comment that begins at `at`, or 0.
  size_t comment_end(size_t at) {
    if (at < comments_behind_ || !starts_with(text_, at, "<!--")) return 0;
    const size_t close = text_.find("-->", at + 4);
    comments_behind_ = close == npos ? npos : close + 3;
    return close == npos ? 0 : close + 3;
  }

  // Returns the end of the tag that begins at `at` if it is to be dropped, else 0.
  size_t tag_end(size_t at) {
    size_t name = at + 1;
    if (starts_with(text_, name, "/")) {
      name = skip_spaces(text_, name + 1);
      const size_t end = words_.skip(text_, name);
      const bool closes = end < text_.size() && text_[end] == '>';
      return closes && kind(name, end).ignored ? end + 1 : 0;
    }
    const size_t begin = skip_spaces(text_, name), end = words_.skip(text_, begin);
    if (begin == end) return 0;
    const TagKind& found = kind(begin, end);
    const bool is_ignored = found.ignored && begin == name;
    if (!is_ignored && !found.self_closing) return 0;
    find_close(end);
    if (close_ == npos) return 0;
    return is_ignored || (slash_ != npos && slash_ >= end) ? close_ + 1 : 0;
  }

  const TagKind& kind(size_t begin, size_t end) const { return tag_kind(text_.substr(begin, end - begin)); }

  // Finds the next ">", and the "/" before it if only white space is between them. Keeps the result, so that all
  // searches together are linear.
  void find_close(size_t pos) {
    if (close_ == npos || (searched_ && close_ >= pos)) return;
    searched_ = true;
    close_ = text_.find('>', pos);
    slash_ = npos;
    if (close_ == npos) return;
    const std::string_view before = strip_right(text_.substr(pos, close_ - pos));
    if (!before.empty() && before.back() == '/') slash_ = pos + before.size() - 1;
  }

  std::string_view text_;
  const Words& words_;
  size_t comments_behind_ = 0, close_ = 0, slash_ = npos;
  bool searched_ = false;
};

inline void remove_tags(std::string& text, std::string& spare) {
  TagCleaner(text, Words::unicode11()).run(spare);
  text.swap(spare);
}

}  // namespace bertdata::wiki::mlperf
