// Drops or replaces comments and tags of HTML and wiki mark-up.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"
#include "wiki/wikiextractor/limits.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Returns the end of the tag name at pos, where a word must end, or npos if another name is there.
inline size_t match_tag_name(std::string_view text, size_t pos, std::string_view name) {
  const size_t end = match_name(text, pos, name);
  return end != npos && Words::unicode14().is_edge(text, end) ? end : npos;
}

// Returns the position of a tag's ">", searching from the end of its name. Quoted attribute values are skipped if the
// closing quote exists.
inline size_t find_tag_end(std::string_view text, size_t pos, Work& work) {
  const size_t begin = pos;
  while ((pos = find_any<'>', '"', '\''>(text, pos)) != npos && text[pos] != '>') {
    const size_t close = text.find(text[pos], pos + 1);
    pos = close == npos ? pos + 1 : close + 1;
  }
  work.spend(kScanCost * ((pos == npos ? text.size() : pos) - begin));
  return pos;
}

// Returns whether the tag that ends with the ">" at `close` closes itself.
inline bool closes_itself(std::string_view text, size_t begin, size_t close) {
  const std::string_view tag = strip_right(text.substr(begin, close - begin));
  return !tag.empty() && tag.back() == '/';
}

// Replaces tags that break a line or a paragraph by a space or a line break. Next to white space, and at the start or
// end of the text, they are just dropped.
class BreakTags {
 public:
  static void replace(std::string& text, std::string& spare, Work& work) {
    if (text.find('<') == npos) return;
    replace(text, spare, {"br", "hr"}, ' ', work);
    replace(text, spare, {"p", "center", "h1", "h2", "h3", "h4"}, '\n', work);
  }

 private:
  static void replace(std::string& text, std::string& spare, std::initializer_list<std::string_view> names, char with,
                      Work& work) {
    const size_t last = text.rfind('>');
    size_t behind = 0;
    for (size_t at = text.find('<'); at != npos && last != npos && at < last; at = text.find('<', at)) {
      const size_t end = with == ' ' ? match_break(text, at, names, work) : match_block(text, at, names);
      if (end == npos) {
        ++at;
        continue;
      }
      if (behind == 0) spare.clear();
      spare.append(text, behind, at - behind);
      const bool inside = at > 0 && end < text.size();
      if (inside && !is_space(decode_before(text, at).cp) && !space_at(text, end)) spare += with;
      behind = at = end;
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  static size_t match_break(std::string_view text, size_t at, std::initializer_list<std::string_view> names,
                            Work& work) {
    if (starts_with(text, at + 1, "/")) return match_closing(text, at, names);
    const size_t pos = skip_spaces(text, at + 1);
    for (std::string_view name : names)
      if (const size_t end = match_tag_name(text, pos, name); end != npos) {
        const size_t close = find_tag_end(text, end, work);
        return close == npos ? npos : close + 1;
      }
    return npos;
  }

  static size_t match_block(std::string_view text, size_t at, std::initializer_list<std::string_view> names) {
    if (starts_with(text, at + 1, "/")) return match_closing(text, at, names);
    for (std::string_view name : names)
      if (const size_t end = match_tag_name(text, at + 1, name); end != npos) {
        const size_t close = text.find('>', end);
        return close == npos ? npos : close + 1;
      }
    return npos;
  }

  static size_t match_closing(std::string_view text, size_t at, std::initializer_list<std::string_view> names) {
    const size_t pos = skip_spaces(text, at + 2);
    for (std::string_view name : names) {
      const size_t end = match_name(text, pos, name);
      const size_t close = end == npos ? npos : skip_spaces(text, end);
      if (close != npos && starts_with(text, close, ">")) return close + 1;
    }
    return npos;
  }
};

// Drops comments, self-closing tags, and tags whose content stays.
class LooseTags {
 public:
  static void drop(std::string& text, std::string& spare, Work& work) {
    if (text.find('<') == npos) return;
    LooseTags tags(text, work);
    const std::vector<Span>& found = tags.find();
    if (found.empty()) return;
    spare.clear();
    size_t behind = 0;
    for (const Span& span : found) {
      spare.append(text, behind, span.begin - behind);
      behind = span.end;
    }
    spare.append(text, behind, npos);
    text.swap(spare);
  }

 private:
  static constexpr std::string_view kSelfClosing[] = {"nobr",   "ref",            "references",
                                                      "nowiki", "templatestyles", "section"};
  static constexpr size_t kSelfClosings = 6;
  static constexpr std::string_view kIgnored[] = {
      "abbr", "b", "big",  "blockquote", "cite", "em",     "font", "hiero",   "i",   "kbd", "plaintext", "s",
      "span", "strike",    "strong",     "tt",   "u",      "var",  "a",       "bdi", "div", "nowiki",    "poem",
      "section",           "sub",        "sup"};

  LooseTags(std::string_view text, Work& work) : text_(text), work_(work), last_close_(text.rfind('>')) {}

  // Returns the ranges to drop. All searches run on the original text, each for its own construct: a range that begins
  // inside another is not dropped again, but the search for its construct continues after it.
  const std::vector<Span>& find() {
    if (last_close_ == npos) return found_;
    for (size_t at = text_.find('<'); at != npos && at < last_close_; at = text_.find('<', at + 1)) {
      const size_t end = std::min({match_comment(at), match_self_closing(at), match_ignored(at)});
      if (end != npos && (found_.empty() || at >= found_.back().end)) found_.push_back({at, end});
    }
    return found_;
  }

  size_t match_comment(size_t at) {
    if (at < comment_end_ || !starts_with(text_, at, "<!--")) return npos;
    const size_t close = text_.find("-->", at + 4);
    comment_end_ = close == npos ? npos : close + 3;
    return comment_end_;
  }

  size_t match_self_closing(size_t at) {
    const size_t pos = skip_spaces(text_, at + 1);
    for (size_t i = 0; i < kSelfClosings; ++i) {
      const size_t end = match_tag_name(text_, pos, kSelfClosing[i]);
      if (end == npos) continue;
      if (at < self_closing_end_[i]) return npos;
      const size_t close = find_tag_end(text_, end, work_);
      if (close == npos || !(closes_itself(text_, end, close) || kSelfClosing[i] == "nobr")) return npos;
      self_closing_end_[i] = close + 1;
      return close + 1;
    }
    return npos;
  }

  size_t match_ignored(size_t at) {
    const bool closing = starts_with(text_, at + 1, "/");
    const size_t pos = closing ? skip_spaces(text_, at + 2) : at + 1;
    if (pos >= text_.size()) return npos;
    for (std::string_view name : kIgnored) {
      const size_t end = match_name(text_, pos, name);
      if (end == npos) continue;
      if (closing) {
        const size_t close = skip_spaces(text_, end);
        if (starts_with(text_, close, ">")) return close + 1;
      } else if (Words::unicode14().is_edge(text_, end)) {
        if (next_close_ < end) next_close_ = text_.find('>', end);
        return next_close_ == npos ? npos : next_close_ + 1;
      }
    }
    return npos;
  }

  std::string_view text_;
  Work& work_;
  size_t last_close_;  // position of the text's last ">"
  std::vector<Span> found_;
  size_t comment_end_ = 0, self_closing_end_[kSelfClosings] = {}, next_close_ = 0;
};

}  // namespace bertdata::wiki::wikiextractor
