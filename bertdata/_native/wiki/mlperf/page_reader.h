// Reads the pages of a dump as the original does: line by line, looking only at the first tag of each line.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// What carries over from one page to the next.
struct ReaderState {
  std::string ns = "0";
  bool redirect = false, inside_text = false, has_last = false;
  std::string last_id;
};

// A page. The texts are valid until the next page is read. The id is empty if the page has none.
struct ReadPage {
  size_t begin, end;             // range of the page in the block
  bool whole;                    // the page has a closing tag
  bool has_title;
  std::string_view id, title, ns, text;
  bool redirect;
};

// The first tag of a line: a name between "<" and ">".
struct LineTag {
  std::string_view name;     // begins with "/" if it is a closing tag; empty if there is no tag
  size_t begin = 0, end = 0;  // range of the tag in the line
  std::string_view rest;      // text after the tag, up to the next "<"
  bool closer = false;        // another tag follows directly
};

inline LineTag find_line_tag(std::string_view line, const Words& words) {
  LineTag tag;
  const size_t last_close = line.rfind('>');
  if (last_close == npos) return tag;
  for (size_t at = line.find('<'); at < last_close; at = line.find('<', at + 1)) {
    const size_t name = at + 1 + starts_with(line, at + 1, "/");
    const size_t name_end = words.skip(line, name);
    if (name_end == name || name_end > last_close) continue;
    tag.name = line.substr(at + 1, name_end - at - 1);
    tag.begin = at;
    tag.end = line.find('>', name_end) + 1;
    const size_t next = line.find('<', tag.end);
    tag.rest = line.substr(tag.end, next == npos ? npos : next - tag.end);
    tag.closer = next != npos && next < last_close;
    return tag;
  }
  return tag;
}

// Reads the pages of a block one after another.
class PageReader {
 public:
  PageReader(std::string_view data, ReaderState& state) : data_(data), state_(state) {}

  // Reads the next page. Returns false if there is none. The last page of a dump may lack its closing tag, and is then
  // not whole.
  bool next(ReadPage& page) {
    if (closed_) forget_page();
    while (pos_ < data_.size()) {
      if (state_.inside_text && append_plain_lines()) continue;
      const size_t line_begin = pos_, line_feed = data_.find('\n', pos_);
      pos_ = line_feed == npos ? data_.size() : line_feed + 1;
      if (take(data_.substr(line_begin, pos_ - line_begin), line_begin, page)) return true;
    }
    if (!opened_) return false;
    opened_ = false;
    closed_ = true;
    page = page_until(data_.size(), false);
    return true;
  }

 private:
  // Appends the lines of page text before the next line that contains "<". Returns whether there were any. Copying
  // them at once is much faster than looking at each line.
  bool append_plain_lines() {
    const size_t tag = data_.find('<', pos_);
    const size_t feed = tag == npos || tag == pos_ ? npos : data_.rfind('\n', tag);
    const size_t end = tag == npos ? data_.size() : feed == npos || feed < pos_ ? pos_ : feed + 1;
    text_.append(data_, pos_, end - pos_);
    const bool any = end > pos_;
    pos_ = end;
    return any;
  }

  // Processes a line, including its line break. Returns whether the line ends a page.
  bool take(std::string_view line, size_t line_begin, ReadPage& page) {
    const LineTag tag = find_line_tag(line, words_);
    if (tag.name.empty()) {
      if (state_.inside_text && line.find('<') == npos) text_ += line;
    } else if (tag.name == "page") {
      text_.clear();
      state_.redirect = false;
      begin_ = line_begin + tag.begin;
      opened_ = true;
    } else if (tag.name == "id") {
      if (id_.empty()) id_ = tag.rest;
    } else if (tag.name == "title") {
      title_ = tag.rest;
      has_title_ = true;
    } else if (tag.name == "ns") {
      state_.ns = tag.rest;
    } else if (tag.name == "redirect") {
      state_.redirect = true;
    } else if (tag.name == "text") {
      if (!tag.closer && line[tag.end - 2] == '/') return false;
      text_ += tag.rest;
      state_.inside_text = !tag.closer;
    } else if (tag.name == "/text") {
      text_ += line.substr(0, tag.begin);
      state_.inside_text = false;
    } else if (tag.name == "/page") {
      page = page_until(line_begin + tag.end, true);
      begin_ = page.end;
      closed_ = true;
      return true;
    } else if (state_.inside_text) {
      text_ += line;
    }
    return false;
  }

  ReadPage page_until(size_t end, bool whole) const {
    return {begin_, end, whole, has_title_, id_, title_, state_.ns, text_, state_.redirect};
  }

  void forget_page() {
    closed_ = opened_ = has_title_ = false;
    id_.clear();
    title_.clear();
    text_.clear();
  }

  std::string_view data_;
  ReaderState& state_;
  const Words& words_ = Words::unicode11();
  size_t pos_ = 0, begin_ = 0;
  bool opened_ = false, closed_ = false, has_title_ = false;
  std::string id_, title_, text_;
};

}  // namespace bertdata::wiki::mlperf
