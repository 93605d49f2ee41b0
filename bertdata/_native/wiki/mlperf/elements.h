// Drops elements together with their content.
#pragma once

#include <string>
#include <string_view>

#include "wiki/mlperf/tag_names.h"
#include "wiki/scan.h"
#include "wiki/work.h"

namespace bertdata::wiki::mlperf {

// The name of a tag, and whether the tag closes an element.
struct TagHead {
  bool closes = false;
  size_t begin = 0, end = 0;  // range of the name in the text, empty if there is none
};

inline TagHead read_tag_head(std::string_view text, size_t at, const Words& words) {
  TagHead head;
  head.begin = skip_spaces(text, at + 1);
  if (head.begin < text.size() && text[head.begin] == '/') {
    head.closes = true;
    head.begin = skip_spaces(text, head.begin + 1);
  }
  head.end = words.skip(text, head.begin);
  return head;
}

// Finds either the opening tags of an element that contain no "/" or ">", or its closing tags.
class ElementMark {
 public:
  ElementMark(uint64_t element, bool closes) : element_(element), closes_(closes) {}

  Span next(std::string_view text, size_t from) {
    for (size_t at = text.find('<', from); at != npos; at = text.find('<', at + 1)) {
      const TagHead head = read_tag_head(text, at, words_);
      if (head.closes != closes_ || head.begin == head.end) continue;
      if (tag_kind(text.substr(head.begin, head.end - head.begin)).discarded != element_) continue;
      const size_t end = closes_ ? head.end : stop_.from(text, head.end);
      if (end < text.size() && text[end] == '>') return {at, end + 1};
    }
    return {};
  }

 private:
  uint64_t element_;
  bool closes_;
  NextAny<'/', '>'> stop_;
  const Words& words_ = Words::unicode11();
};

// Returns the elements that have both opening and closing tags in the text, as bits.
inline uint64_t present_elements(std::string_view text) {
  const Words& words = Words::unicode11();
  uint64_t opened = 0, closed = 0;
  for (size_t at = text.find('<'); at != npos; at = text.find('<', at + 1)) {
    const TagHead head = read_tag_head(text, at, words);
    if (head.begin == head.end) continue;
    const uint64_t element = tag_kind(text.substr(head.begin, head.end - head.begin)).discarded;
    (head.closes ? closed : opened) |= element;
  }
  return opened & closed;
}

// Drops all elements of kDiscarded, in that order.
inline void remove_elements(std::string& text, std::string& spare, Work& work) {
  uint64_t present = present_elements(text);
  for (uint64_t element = 1; element <= present && element; element <<= 1) {
    if (!(present & element)) continue;
    work.spend(text.size());
    const auto cuts = cut_ranges(text, ElementMark(element, false), ElementMark(element, true));
    if (cuts.empty()) continue;
    drop_ranges(text, cuts, spare);
    text.swap(spare);
    present = present_elements(text);  // the texts around a cut can join to form a new tag
  }
}

}  // namespace bertdata::wiki::mlperf
