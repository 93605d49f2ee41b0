// Tidies spaces, dots and punctuation.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// Replaces each run of at least `count` equal bytes by `to`.
inline void shorten_runs(std::string& text, char byte, size_t count, std::string_view to, std::string& spare) {
  const std::string mark(count, byte);
  size_t at = find_mark(text, mark, 0);
  if (at == npos) return;
  spare.clear();
  size_t behind = 0;
  for (; at != npos; at = find_mark(text, mark, behind)) {
    spare.append(text, behind, at - behind);
    spare.append(to);
    behind = at + count;
    while (behind < text.size() && text[behind] == byte) ++behind;
  }
  spare.append(text, behind, npos);
  text.swap(spare);
}

// Returns the end of the shortest range that starts with the line break at `at`, ends with another line break, and has
// at least one character and no word character between them. Returns npos if there is none.
inline size_t wordless_end(std::string_view text, size_t at, const Words& words) {
  size_t pos = at + 1;
  while (pos < text.size() && !words.length_at(text, pos)) {
    pos += decode_at(text, pos).length;
    if (pos < text.size() && text[pos] == '\n') return pos + 1;
  }
  return npos;
}

// Replaces each range that wordless_end() finds by a single line break. This removes lines of only punctuation, and
// shortens runs of empty lines.
inline void remove_wordless_lines(std::string& text, std::string& spare) {
  const Words& words = Words::unicode11();
  const std::string_view in = text;
  size_t behind = 0;
  spare.clear();
  for (size_t at = in.find('\n'); at != npos;) {
    const size_t end = wordless_end(in, at, words);
    if (end != npos) {
      spare.append(in, behind, at + 1 - behind);
      behind = end;
    }
    at = in.find('\n', end == npos ? at + 1 : end);
  }
  if (!behind) return;
  spare.append(in, behind, npos);
  text.swap(spare);
}

// Texts such as " ,:.)]»" make little sense: the original means any of these characters, but its regular expression
// matches only the whole sequence. That is reproduced here.
inline void clean_typography(std::string& text, std::string& spare) {
  replace_all(text, "<<", "«", spare);
  replace_all(text, ">>", "»", spare);
  for (size_t at = text.find('\t'); at != npos; at = text.find('\t', at)) text[at] = ' ';
  shorten_runs(text, ' ', 2, " ", spare);
  shorten_runs(text, '.', 4, "...", spare);
  replace_all(text, " ,:.)]»", ",:.)]»", spare);
  replace_all(text, "[(« ", "[(«", spare);
  remove_wordless_lines(text, spare);
  replace_all(text, ",,", ",", spare);
  replace_all(text, ",.", ".", spare);
}

}  // namespace bertdata::wiki::mlperf
