// Replaces external links in brackets by their labels.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"
#include "wiki/cut.h"

namespace bertdata::wiki::mlperf {

inline constexpr std::string_view kSchemes[] = {
    "bitcoin:", "ftp://", "ftps://", "geo:",     "git://", "gopher://", "http://", "https://", "irc://",
    "ircs://",  "magnet:", "mailto:", "mms://",  "news:",  "nntp://",   "redis://", "sftp://", "sip:",
    "sips:",    "sms:",   "ssh://",  "svn://",   "tel:",   "telnet://", "urn:",    "worldwind://", "xmpp:",
    "//"};

// Returns the length of the address character at pos, or 0 where the address ends.
inline size_t address_character_at(std::string_view text, size_t pos) {
  if (pos >= text.size()) return 0;
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return byte > 0x20 && byte != 0x7F && std::string_view("[]<>\"").find(text[pos]) == npos;
  const Character at = decode_at(text, pos);
  return is_space(at.cp) ? 0 : at.length;
}

inline size_t skip_address(std::string_view text, size_t pos) {
  while (const size_t length = address_character_at(text, pos)) pos += length;
  return pos;
}

// Returns the end of a scheme and at least one more address character, or npos. If a scheme is the prefix of another,
// it does not matter which one matches: what follows is part of the address in both cases.
inline size_t skip_scheme_and_address(std::string_view text, size_t pos) {
  if (pos >= text.size() || text[pos] == '[' || text[pos] == ']') return npos;
  for (std::string_view scheme : kSchemes) {
    const size_t end = match_name(text, pos, scheme);
    if (end == npos) continue;
    if (const size_t behind = skip_address(text, end); behind > end) return behind;
  }
  return npos;
}

// Returns whether a label may contain the byte: everything except brackets and control characters other than TAB.
inline bool is_label_byte(char byte) {
  return byte != '[' && byte != ']' && (static_cast<uint8_t>(byte) >= 0x20 || byte == '\t');
}

inline size_t skip_label_bytes(std::string_view text, size_t pos) {
  while (pos < text.size() && is_label_byte(text[pos])) ++pos;
  return pos;
}

// Returns the position of the label's "]", or npos if this is no label. A label may contain [[...]].
inline size_t find_label_end(std::string_view text, size_t pos) {
  while (true) {
    pos = skip_label_bytes(text, pos);
    if (pos >= text.size()) return npos;
    if (text[pos] == ']') return pos;
    if (!starts_with(text, pos, "[[")) return npos;
    const size_t begin = pos + 2, end = skip_label_bytes(text, begin);
    if (end == begin || !starts_with(text, end, "]]")) return npos;
    pos = end + 2;
  }
}

// Returns whether Python's re, ignoring case, matches the character with [\x80-\xff]. Some characters beyond that
// range have their other case in it.
inline bool is_latin_letter(uint32_t cp) {
  const bool other_case = cp == 0x178 || cp == 0x39C || cp == 0x3BC || cp == 0x1E9E || cp == 0x212B;
  return other_case || (cp >= 0x80 && cp <= 0xFF);
}

// Returns the length of the file name character at pos, or 0.
inline size_t file_character_at(std::string_view text, size_t pos) {
  const char letter = lower_ascii(text[pos]);
  if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) return 1;
  if (std::string_view("_.,~%-+&;#*?!=()@").find(letter) != npos) return 1;
  if (static_cast<uint8_t>(letter) < 0x80) return 0;
  for (std::string_view name : {"i", "s", "k"})
    if (const size_t end = match_name(text, pos, name); end != npos) return end - pos;
  const Character at = decode_at(text, pos);
  return is_latin_letter(at.cp) ? at.length : 0;
}

// Returns the length of the text without a picture's file name extension, or npos.
inline size_t without_picture_ending(std::string_view text) {
  for (std::string_view ending : {".gif", ".png", ".jpg", ".jpeg"}) {
    const size_t dot = text.rfind('.');
    if (dot != npos && match_name(text, dot, ending) == text.size()) return dot;
  }
  return npos;
}

// Returns whether the label is the address of a picture. Such a link is dropped without its label.
inline bool is_picture_address(std::string_view label) {
  size_t host = match_name(label, 0, "http://");
  if (host == npos) host = match_name(label, 0, "https://");
  const size_t slash = label.rfind('/'), dot = without_picture_ending(label);
  if (host == npos || dot == npos || slash <= host || dot <= slash + 1) return false;
  if (skip_address(label.substr(0, slash), host) != slash) return false;
  size_t pos = slash + 1;
  while (pos < dot) {
    const size_t length = file_character_at(label, pos);
    if (!length) return false;
    pos += length;
  }
  return true;
}

inline void replace_external_links(std::string& text, std::string& spare) {
  const std::string_view in = text;
  size_t behind = 0;
  spare.clear();
  for (size_t at = in.find('['); at != npos; at = in.find('[', at + 1)) {
    const size_t address_end = skip_scheme_and_address(in, at + 1);
    if (address_end == npos) continue;
    const size_t begin = skip_spaces(in, address_end), end = find_label_end(in, begin);
    if (end == npos) continue;
    spare.append(in, behind, at - behind);
    const std::string_view label = in.substr(begin, end - begin);
    if (!is_picture_address(label)) spare += label;
    behind = end + 1;
    at = end;
  }
  if (!behind) return;
  spare.append(in, behind, npos);
  text.swap(spare);
}

}  // namespace bertdata::wiki::mlperf
