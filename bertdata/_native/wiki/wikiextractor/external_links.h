// Replaces external links in brackets by their labels.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::wikiextractor {

inline constexpr std::string_view kSchemes[] = {
    "//", "bitcoin:", "ftp://", "ftps://", "geo:", "git://", "gopher://", "http://", "https://", "irc://", "ircs://",
    "magnet:", "mailto:", "mms://", "news:", "nntp://", "redis://", "sftp://", "sip:", "sips:", "sms:",
    "ssh://", "svn://", "tel:", "telnet://", "urn:", "worldwind://", "xmpp:"};

// For each first letter, the range of its schemes in kSchemes, which is sorted.
struct SchemesByLetter {
  uint8_t begins[128] = {}, ends[128] = {};

  constexpr SchemesByLetter() {
    for (size_t i = std::size(kSchemes); i--;) {
      const auto letter = static_cast<size_t>(kSchemes[i][0]);
      begins[letter] = static_cast<uint8_t>(i);
      if (!ends[letter]) ends[letter] = static_cast<uint8_t>(i + 1);
    }
  }
};

class ExternalLinks {
 public:
  // Appends the text with its links replaced. Returns false, and appends nothing, if there are no links.
  static bool replace(std::string_view text, std::string& out) {
    size_t behind = 0, label_end = 0;
    for (size_t at = text.find('['); at != npos; at = text.find('[', at + 1)) {
      const size_t url = match_scheme(text, at + 1);
      if (url == npos) continue;
      const size_t url_end = skip_url(text, url);
      if (url_end == url) continue;
      const size_t label = skip_spaces(text, url_end);
      if (label_end < label) label_end = find_label_end(text, label);
      if (label_end >= text.size()) label_end = text.size();
      if (label_end == text.size() || text[label_end] != ']') continue;
      out.append(text, behind, at - behind);
      const std::string_view shown = text.substr(label, label_end - label);
      if (!is_image(shown)) out.append(shown);
      behind = label_end + 1;
      at = label_end;
    }
    if (behind == 0) return false;
    out.append(text, behind, npos);
    return true;
  }

 private:
  // Returns the end of the scheme at pos, or npos.
  static size_t match_scheme(std::string_view text, size_t pos) {
    if (pos >= text.size()) return npos;
    const auto first = static_cast<uint8_t>(lower_ascii(text[pos]));
    static constexpr SchemesByLetter kByLetter;
    size_t i = first < 0x80 ? kByLetter.begins[first] : 0;
    // Letters beyond ASCII can match without regard to case, so all schemes are tried.
    const size_t end = first < 0x80 ? kByLetter.ends[first] : std::size(kSchemes);
    for (; i < end; ++i)
      if (const size_t behind = match_name(text, pos, kSchemes[i]); behind != npos) return behind;
    return npos;
  }

  static bool is_excluded(char byte) {
    const auto value = static_cast<uint8_t>(byte);
    return value <= 0x20 || value == 0x7F || byte == '[' || byte == ']' || byte == '<' || byte == '>' || byte == '"';
  }

  static size_t skip_url(std::string_view text, size_t pos) {
    while (pos < text.size() && !is_excluded(text[pos])) {
      if (static_cast<uint8_t>(text[pos]) >= 0x80) {
        const Character at = decode_at(text, pos);
        if (is_space(at.cp)) break;
        pos += at.length;
      } else {
        ++pos;
      }
    }
    return pos;
  }

  // Returns the position of the first "]" or control character other than TAB. A label can contain neither.
  static size_t find_label_end(std::string_view text, size_t pos) {
    const auto is_control = [](char byte) { return static_cast<uint8_t>(byte) < 0x20 && byte != '\t'; };
    while (pos < text.size() && text[pos] != ']' && !is_control(text[pos])) ++pos;
    return pos;
  }

  // Returns whether the label is the address of an image.
  static bool is_image(std::string_view label) {
    size_t pos = match_name(label, 0, "http");
    if (pos == npos) return false;
    const size_t secure = match_name(label, pos, "s");
    if (secure != npos && starts_with(label, secure, "://")) pos = secure;
    if (!starts_with(label, pos, "://")) return false;
    pos += 3;
    const size_t slash = label.rfind('/'), dot = label.rfind('.');
    if (slash == npos || slash <= pos || dot == npos || dot <= slash + 1) return false;
    if (skip_url(label.substr(0, slash), pos) != slash) return false;
    bool image = false;
    for (std::string_view ending : {"gif", "png", "jpg", "jpeg"})
      image |= match_name(label, dot + 1, ending) == label.size();
    for (size_t i = slash + 1; i < dot && image;) {
      const Character at = decode_at(label, i);
      image = is_of_file_name(at.cp);
      i += at.length;
    }
    return image;
  }

  // Returns whether a file name may contain the character: letters, digits, some punctuation, U+0080 to U+00FF, and
  // characters that equal one of these without regard to case.
  static bool is_of_file_name(uint32_t cp) {
    if (cp >= 0x80) {
      for (uint32_t folded : {0x130u, 0x131u, 0x17Fu, 0x212Au, 0x178u, 0x39Cu, 0x3BCu, 0x1E9Eu, 0x212Bu})
        if (cp == folded) return true;
      return cp <= 0xFF;
    }
    const char byte = static_cast<char>(cp), lower = lower_ascii(byte);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') ||
           (byte && std::string_view("_.,~%-+&;#*?!=()@").find(byte) != npos);
  }
};

}  // namespace bertdata::wiki::wikiextractor
