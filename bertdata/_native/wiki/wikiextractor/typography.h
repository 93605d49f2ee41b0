// Tidies punctuation and spaces.
#pragma once

#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "wiki/scan.h"

namespace bertdata::wiki::wikiextractor {

class Typography {
 public:
  static void apply(std::string& text, std::string& spare) {
    replace_all(text, "<<", "\xC2\xAB", spare);
    replace_all(text, ">>", "\xC2\xBB", spare);
    tidy_spaces(text, spare);
    drop_marks_between_lines(text, spare);
    replace_all(text, ",,", ",", spare);
    replace_all(text, ",.", ".", spare);
  }

 private:
  static bool closes(std::string_view text, size_t pos) {
    if (pos >= text.size()) return false;
    const char byte = text[pos];
    return byte == ',' || byte == ':' || byte == '.' || byte == ')' || byte == ']' ||
           starts_with(text, pos, "\xC2\xBB");
  }
  static bool opens_before(std::string_view text, size_t pos) {
    if (pos > 1 && starts_with(text, pos - 2, "\xC2\xAB")) return true;
    return pos > 0 && (text[pos - 1] == '[' || text[pos - 1] == '(');
  }

  // Returns the next space, tab or dot at pos or later that tidying may change, or npos. Most of those that stay
  // unchanged (a single space between words, a single dot) are skipped.
  static size_t find_untidy(std::string_view text, size_t pos) {
    if (pos == 0 && !text.empty() && (text[0] == ' ' || text[0] == '\t' || text[0] == '.')) return 0;
    if (pos == 0) pos = 1;
#if defined(__SSE2__)
    for (; pos + 17 <= text.size(); pos += 16) {
      // A space counts only next to certain characters, and a dot only before another dot. Loading the text at pos - 1
      // and pos + 1 shows the neighbours of all 16 bytes at once.
      const __m128i here = load(text, pos), before = load(text, pos - 1), behind = load(text, pos + 1);
      const __m128i space = equal<' '>(here), dots = _mm_and_si128(equal<'.'>(here), equal<'.'>(behind));
      const __m128i beside = _mm_or_si128(equal<'[', '(', '\xAB'>(before),
                                          equal<' ', '\t', ',', ':', '.', ')', ']', '\xC2'>(behind));
      const __m128i hits = _mm_or_si128(_mm_or_si128(_mm_and_si128(space, beside), dots), equal<'\t'>(here));
      if (const auto mask = static_cast<unsigned>(_mm_movemask_epi8(hits)))
        return pos + static_cast<size_t>(__builtin_ctz(mask));
    }
#endif
    return find_any<' ', '\t', '.'>(text, pos);
  }

#if defined(__SSE2__)
  static __m128i load(std::string_view text, size_t pos) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + pos));
  }
  template <char... marks>
  static __m128i equal(__m128i bytes) {
    __m128i hits = _mm_setzero_si128();
    ((hits = _mm_or_si128(hits, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(marks)))), ...);
    return hits;
  }
#endif

  // Replaces runs of spaces and tabs by a single space, and runs of four or more dots by three. Then drops the space
  // before closing and after opening punctuation.
  static void tidy_spaces(std::string& text, std::string& spare) {
    spare.clear();
    size_t behind = 0, pos = 0;
    while ((pos = find_untidy(text, pos)) != npos) {
      const bool dots = text[pos] == '.';
      size_t end = pos + 1;
      while (end < text.size() && (dots ? text[end] == '.' : text[end] == ' ' || text[end] == '\t')) ++end;
      const size_t run = end - pos;
      if (dots) {
        if (run > 3) {
          spare.append(text, behind, pos + 3 - behind);
          behind = end;
        }
      } else if (closes(text, end) || opens_before(text, pos)) {
        spare.append(text, behind, pos - behind);
        behind = end;
      } else if (run > 1 || text[pos] == '\t') {
        spare.append(text, behind, pos - behind).append(" ");
        behind = end;
      }
      pos = end;
    }
    if (behind == 0) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Drops lines without a word character, with one of the line breaks around them.
  static void drop_marks_between_lines(std::string& text, std::string& spare) {
    const Words& words = Words::unicode14();
    size_t behind = 0;
    bool changed = false;
    for (size_t at = text.find('\n'); at != npos; at = text.find('\n', at)) {
      const size_t end = find_next_line(text, at + 1, words);
      if (end == npos) {
        ++at;
        continue;
      }
      if (!changed) spare.clear();
      changed = true;
      spare.append(text, behind, at - behind).append("\n");
      behind = at = end + 1;
    }
    if (!changed) return;
    spare.append(text, behind, npos);
    text.swap(spare);
  }

  // Returns the position of the line break that follows one or more characters, or npos if a word character comes
  // first.
  static size_t find_next_line(std::string_view text, size_t pos, const Words& words) {
    for (bool first = true; pos < text.size(); first = false) {
      if (text[pos] == '\n' && !first) return pos;
      if (words.length_at(text, pos)) return npos;
      pos += decode_at(text, pos).length;
    }
    return npos;
  }
};

}  // namespace bertdata::wiki::wikiextractor
