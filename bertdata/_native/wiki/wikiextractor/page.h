// Finds the pages of a block, and decides what each page is, as wikiextractor does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "unicode/unicode.h"
#include "wiki/scan.h"

namespace bertdata::wiki::wikiextractor {

// A <page ...> or </page> tag.
struct PageTag {
  size_t begin = npos, end = npos;
  bool closing = false;

  bool found() const { return begin != npos; }
};

inline bool is_byte_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Returns the page tag that begins at pos, if there is one.
inline PageTag match_page_tag(std::string_view data, size_t pos) {
  const bool closing = starts_with(data, pos + 1, "/");
  const size_t name = pos + 1 + closing;
  if (!starts_with(data, name, "page")) return {};
  size_t end = name + 4;
  if (end < data.size() && is_byte_space(data[end])) end = data.find('>', end);
  if (end == npos || !starts_with(data, end, ">")) return {};
  return {pos, end + 1, closing};
}

inline PageTag find_page_tag(std::string_view data, size_t pos) {
  for (pos = data.find('<', pos); pos != npos; pos = data.find('<', pos + 1))
    if (const PageTag tag = match_page_tag(data, pos); tag.found()) return tag;
  return {};
}

// A page from its opening to its closing tag. If the closing tag is missing, the page ends at the next opening tag or
// at the end of the data, and is not whole.
struct RawPage {
  size_t begin, end;
  bool whole;
};

// Splits a block into its pages.
class PageSplitter {
 public:
  explicit PageSplitter(std::string_view data) : data_(data) {}

  std::optional<RawPage> next() {
    while (pos_ != npos) {
      const PageTag tag = find_page_tag(data_, pos_);
      if (!tag.found()) break;
      const size_t behind = pos_, start = start_;
      pos_ = tag.end;
      start_ = tag.closing ? npos : tag.begin;
      if (tag.closing) return RawPage{start == npos ? behind : start, tag.end, start != npos};
      if (start != npos) return RawPage{start, tag.begin, false};
    }
    pos_ = npos;
    if (start_ == npos) return std::nullopt;
    const size_t start = start_;
    start_ = npos;
    return RawPage{start, data_.size(), false};
  }

 private:
  std::string_view data_;
  size_t pos_ = 0, start_ = npos;
};

// Returns the content of the first element with this name that contains no "<".
inline std::optional<std::string_view> find_element(std::string_view text, std::string_view open,
                                                    std::string_view close, bool may_be_empty) {
  for (size_t at = find_mark(text, open, 0); at != npos; at = find_mark(text, open, at + 1)) {
    const size_t begin = at + open.size(), end = text.find('<', begin);
    if (end == npos) return std::nullopt;
    if (starts_with(text, end, close) && (may_be_empty || end > begin)) return text.substr(begin, end - begin);
  }
  return std::nullopt;
}

// The opening tag <text ...> of a page.
struct TextTag {
  size_t begin = npos, end = npos;
};

inline TextTag find_text_tag(std::string_view page, size_t pos) {
  constexpr std::string_view kOpen = "<text";
  for (size_t at = find_mark(page, kOpen, pos); at != npos; at = find_mark(page, kOpen, at + 1)) {
    if (!Words::unicode14().is_edge(page, at + kOpen.size())) continue;
    const size_t close = page.find('>', at + kOpen.size());
    return close == npos ? TextTag{} : TextTag{at, close + 1};
  }
  return {};
}

// Returns the id of a page that may be invalid UTF-8, or an empty text.
inline std::string_view find_page_id(std::string_view page) {
  size_t text = find_mark(page, "<text", 0);
  const auto is_word = [&](size_t i) {
    const char lower = i < page.size() ? lower_ascii(page[i]) : ' ';
    return (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '_';
  };
  while (text != npos && is_word(text + 5)) text = find_mark(page, "<text", text + 1);
  return find_element(page.substr(0, text), "<id>", "</id>", false).value_or(std::string_view());
}

// Joins the text elements of a page. Returns false if one is not closed. `text` is a view of the page, or of `joined`
// if there are several elements.
inline bool read_text(std::string_view page, std::string& joined, std::string_view& text) {
  text = {};
  joined.clear();
  bool first = true;
  size_t end = 0;
  for (TextTag tag = find_text_tag(page, 0); tag.begin != npos; tag = find_text_tag(page, end)) {
    end = tag.end;
    if (page[tag.end - 2] == '/') continue;
    end = find_mark(page, "</text>", tag.end);
    if (end == npos) return false;
    const std::string_view content = page.substr(tag.end, end - tag.end);
    if (first) {
      text = content;
    } else {
      if (joined.empty()) joined = text;
      joined.append(content);
      text = joined;
    }
    first = false;
  }
  return true;
}

inline bool is_utf8(std::string_view text) {
  try {
    check_utf8(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    return true;
  } catch (const InvalidUtf8&) {
    return false;
  }
}

// Reasons why a page is no article. The Python side uses the same texts.
constexpr const char* kCutOff = "cut off";
constexpr const char* kTooLarge = "too large";
constexpr const char* kBadUtf8 = "invalid UTF-8";
constexpr const char* kMalformed = "malformed";
constexpr const char* kRedirect = "redirect";
constexpr const char* kTemplateTitle = "title begins like a template's";
constexpr const char* kDuplicate = "same id as the article before";
constexpr const char* kLeftOut = "left out by --skip-page";
constexpr const char* kLimit = "limit";
constexpr const char* kUnknown = "unknown";

// An article as in the dump, or the reason why the page is none.
struct Page {
  std::string reason;
  std::string_view id, title, text;

  // Reads a page. joined: buffer for the joined text of several text elements.
  static Page read(std::string_view data, bool whole, std::string_view template_namespace, std::string& joined) {
    if (!whole) return {kCutOff, {}, {}, {}};
    if (!is_utf8(data)) return {kBadUtf8, {}, {}, {}};
    const std::string_view head = data.substr(0, find_text_tag(data, 0).begin);
    const auto ns = find_element(head, "<ns>", "</ns>", true);
    const auto title = find_element(head, "<title>", "</title>", false);
    const auto id = find_element(head, "<id>", "</id>", false);
    if (!ns || !title || !id) return {kMalformed, {}, {}, {}};
    if (*ns != "0") return {"namespace " + std::string(*ns), {}, {}, {}};
    if (has_redirect(head)) return {kRedirect, {}, {}, {}};
    if (starts_with(*title, 0, template_namespace)) return {kTemplateTitle, {}, {}, {}};
    Page page{{}, *id, *title, {}};
    if (!read_text(data, joined, page.text)) return {kMalformed, {}, {}, {}};
    return page;
  }

 private:
  static bool has_redirect(std::string_view head) {
    constexpr std::string_view kOpen = "<redirect";
    for (size_t at = find_mark(head, kOpen, 0); at != npos; at = find_mark(head, kOpen, at + 1))
      if (Words::unicode14().is_edge(head, at + kOpen.size())) return true;
    return false;
  }
};

}  // namespace bertdata::wiki::wikiextractor
