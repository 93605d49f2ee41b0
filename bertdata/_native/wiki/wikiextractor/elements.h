// Drops elements together with their content.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/wikiextractor/tags.h"

namespace bertdata::wiki::wikiextractor {

// Elements that are dropped, in this order.
inline constexpr std::string_view kDropped[] = {
    "gallery", "timeline", "noinclude", "pre",      "table", "tr", "td", "th",   "caption",    "div",  "form",
    "input",   "select",   "option",    "textarea", "ul",    "li", "ol", "dl",   "dt",         "dd",   "menu",
    "dir",     "ref",      "references", "img",     "imagemap", "source", "small", "inputbox", "includeonly",
    "categorytree"};

// For each first letter, the names that begin with it: bit i is set for kDropped[i].
struct DroppedByLetter {
  uint64_t names[128] = {};

  constexpr DroppedByLetter() {
    for (size_t i = 0; i < std::size(kDropped); ++i) names[static_cast<size_t>(kDropped[i][0])] |= uint64_t{1} << i;
  }
};

class Elements {
 public:
  static void drop(std::string& text, std::string& spare, Work& work) {
    if (text.find('<') == npos) return;
    uint64_t present = 0;
    bool stale = true;  // the text has changed since `present` was found; dropping can join pieces to form another tag
    for (size_t i = 0; i < std::size(kDropped); ++i) {
      if (stale) present = find_names(text);
      stale = present >> i & 1 && drop(text, spare, kDropped[i], work);
    }
    drop_all(text, spare, BareTag{"noinclude"});
    drop_all(text, spare, Closer{"noinclude"});  // a closing tag may have formed where an opening tag was dropped
  }

 private:
  // Returns the names that have a tag, complete or not, in the text: bit i for kDropped[i].
  static uint64_t find_names(std::string_view text) {
    static constexpr DroppedByLetter kByLetter;
    uint64_t present = 0;
    const size_t last = text.rfind('>');
    for (size_t at = text.find('<'); at != npos && last != npos && at < last; at = text.find('<', at + 1)) {
      size_t pos = skip_spaces(text, at + 1);
      if (starts_with(text, pos, "/")) pos = skip_spaces(text, pos + 1);
      const auto first = static_cast<uint8_t>(pos < text.size() ? lower_ascii(text[pos]) : 0);
      uint64_t missing = ~present;
      // Letters beyond ASCII can match without regard to case, so all names are tried.
      if (first < 0x80) missing &= kByLetter.names[first];
      for (size_t i = 0; i < std::size(kDropped) && missing >> i; ++i)
        if (missing >> i & 1 && match_name(text, pos, kDropped[i]) != npos) present |= uint64_t{1} << i;
    }
    return present;
  }

  // Finds opening tags that do not close themselves.
  struct Opener {
    std::string_view name;
    Work& work;
    size_t last_close;  // position of the text's last ">"

    Span next(std::string_view text, size_t from) const {
      if (last_close == npos) return {};
      for (size_t at = text.find('<', from); at != npos && at < last_close; at = text.find('<', at + 1)) {
        const size_t end = match_tag_name(text, skip_spaces(text, at + 1), name);
        if (end == npos) continue;
        const size_t close = find_tag_end(text, end, work);
        if (close != npos && text[close - 1] != '/') return {at, close + 1};
      }
      return {};
    }
  };

  // Finds closing tags.
  struct Closer {
    std::string_view name;

    Span next(std::string_view text, size_t from) const {
      for (size_t at = text.find('<', from); at != npos; at = text.find('<', at + 1)) {
        size_t pos = skip_spaces(text, at + 1);
        if (!starts_with(text, pos, "/")) continue;
        pos = match_name(text, skip_spaces(text, pos + 1), name);
        const size_t close = pos == npos ? npos : skip_spaces(text, pos);
        if (close != npos && starts_with(text, close, ">")) return {at, close + 1};
      }
      return {};
    }
  };

  // Finds tags without attributes: <name> and <name/>.
  struct BareTag {
    std::string_view name;

    Span next(std::string_view text, size_t from) const {
      for (size_t at = text.find('<', from); at != npos; at = text.find('<', at + 1)) {
        size_t pos = match_name(text, skip_spaces(text, at + 1), name);
        if (pos == npos) continue;
        pos = skip_spaces(text, pos);
        if (starts_with(text, pos, "/")) pos = skip_spaces(text, pos + 1);
        if (starts_with(text, pos, ">")) return {at, pos + 1};
      }
      return {};
    }
  };

  // Drops the elements with this name, and closing tags that are left over. Returns whether there were any.
  static bool drop(std::string& text, std::string& spare, std::string_view name, Work& work) {
    const std::vector<Span> cuts = cut_ranges(text, Opener{name, work, text.rfind('>')}, Closer{name});
    if (!cuts.empty()) {
      drop_ranges(text, cuts, spare);
      text.swap(spare);
    }
    return drop_all(text, spare, Closer{name}) || !cuts.empty();
  }

  template <class Mark>
  static bool drop_all(std::string& text, std::string& spare, const Mark& mark) {
    std::vector<Span> found;
    for (Span next = mark.next(text, 0); next.found(); next = mark.next(text, next.end)) found.push_back(next);
    if (found.empty()) return false;
    drop_ranges(text, found, spare);
    text.swap(spare);
    return true;
  }
};

}  // namespace bertdata::wiki::wikiextractor
