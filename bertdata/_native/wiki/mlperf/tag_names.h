// Names of tags and what is done to the elements with these names.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wiki/cut.h"

namespace bertdata::wiki::mlperf {

// Elements that are dropped with their content, in this order.
inline constexpr std::array<std::string_view, 32> kDiscarded = {
    "gallery", "timeline", "noinclude", "pre",    "table",  "tr",         "td",  "th",       "caption",
    "div",     "form",     "input",     "select", "option", "textarea",   "ul",  "li",       "ol",
    "dl",      "dt",       "dd",        "menu",   "dir",    "ref",        "references", "img", "imagemap",
    "source",  "small",    "sub",       "sup",    "indicator"};

// Elements whose tags are dropped and whose content stays.
inline constexpr std::array<std::string_view, 25> kIgnored = {
    "abbr", "b",  "big", "blockquote", "center", "cite", "em",   "font",   "h1",     "h2", "h3", "h4", "hiero",
    "i",    "kbd", "p",  "plaintext",  "s",      "span", "strike", "strong", "tt",   "u",  "var", "a"};

// Elements whose self-closing tags are dropped.
inline constexpr std::array<std::string_view, 6> kSelfClosing = {"br", "hr", "nobr", "ref", "references", "nowiki"};

// What is done to an element.
struct TagKind {
  uint64_t discarded = 0;  // bit i is set for kDiscarded[i]
  bool ignored = false, self_closing = false;
};

// Returns the name in lower-case ASCII, where a few other letters count as i, s or k (see match_name). Returns an
// empty name if it contains any other character beyond ASCII or is too long.
inline std::string_view plain_name(std::string_view name, std::array<char, 16>& plain) {
  size_t size = 0;
  for (size_t pos = 0; pos < name.size();) {
    if (size == plain.size()) return {};
    char letter = lower_ascii(name[pos]);
    size_t length = 1;
    if (static_cast<uint8_t>(letter) >= 0x80) {
      letter = '\0';
      for (std::string_view plain_letter : {"i", "s", "k"})
        if (const size_t end = match_name(name, pos, plain_letter); end != npos)
          letter = plain_letter[0], length = end - pos;
      if (!letter) return {};
    }
    plain[size++] = letter;
    pos += length;
  }
  return {plain.data(), size};
}

// Returns what is done to elements with this name, which must be a run of word characters. Nothing is done to unknown
// elements.
inline const TagKind& tag_kind(std::string_view name) {
  static const auto kinds = [] {
    std::unordered_map<std::string_view, TagKind> made;
    for (size_t i = 0; i < kDiscarded.size(); ++i) made[kDiscarded[i]].discarded = uint64_t{1} << i;
    for (std::string_view ignored : kIgnored) made[ignored].ignored = true;
    for (std::string_view closing : kSelfClosing) made[closing].self_closing = true;
    return made;
  }();
  static const TagKind kNone;
  std::array<char, 16> plain;
  const auto found = kinds.find(plain_name(name, plain));
  return found == kinds.end() ? kNone : found->second;
}

}  // namespace bertdata::wiki::mlperf
