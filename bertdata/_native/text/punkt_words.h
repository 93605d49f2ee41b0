// Splits the text around a candidate into words and decides whether a sentence ends there. Twin of
// text/punkt/words.py.
// All text is valid UTF-8.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "text/punkt_characters.h"
#include "text/punkt_tables.h"
#include "unicode/unicode.h"

namespace bertdata {

// Returns the first byte of the character that ends at p (first < p).
inline const uint8_t* step_back(const uint8_t* first, const uint8_t* p) {
  do --p;
  while (p > first && (*p & 0xC0) == 0x80);
  return p;
}

// Lower case of the characters that take two bytes in UTF-8. 0 if the lower case is not a single character of two
// bytes, and for the capital sigma, whose lower case depends on the word.
struct TwoByteLower {
  uint16_t of[0x800] = {};
  TwoByteLower() {
    for (uint32_t cp = 0x80; cp < 0x800; ++cp) {
      const auto* const mapping = find_mapping(unicode11::k_lower, cp);
      const uint32_t to = mapping ? mapping->to[0] : cp;
      const bool is_one = !mapping || !mapping->to[1];
      if (is_one && to >= 0x80 && to < 0x800 && cp != 0x3A3) of[cp] = static_cast<uint16_t>(to);
    }
  }
};

// Decides whether a sentence ends in a context. Keeps buffers between calls.
class PunktWords {
 public:
  PunktWords(const PunktTables& tables, const PunktCharacters& characters)
      : tables_(tables), characters_(characters) {}

  // Returns whether a sentence ends with a word of the context, not counting its last word. A line that str.strip()
  // empties has no words.
  bool contain_sentence_end(const uint8_t* p, const uint8_t* end) {
    Word word{}, following{};
    for (const uint8_t* last; p < end; p = last + 1) {
      last = std::find(p, end, '\n');
      if (characters_.without_leading_space(p, last) == last) continue;
      for (; next_word(p, last, following); word = following)
        if (word.first && ends_between(word, following)) return true;
    }
    return false;
  }

 private:
  // The bytes [first, last) of a word.
  struct Word {
    const uint8_t *first, *last;
    size_t size() const { return static_cast<size_t>(last - first); }
    bool is(const char* one_of) const { return size() == 1 && std::strchr(one_of, *first) != nullptr && *first; }
    bool ends_with_dots() const { return size() > 1 && last[-1] == '.' && last[-2] == '.'; }
  };

  // Properties of a word that follow from its form and the tables. The strings point into the buffer given to
  // describe().
  struct Form {
    std::string_view lowered;
    std::string_view body;  // lower-cased word without its final period, or ##number##
    uint16_t flags;         // flags of `body` in the tables
    bool is_number, is_abbreviation, ends_sentence;
  };

  bool next_word(const uint8_t*& p, const uint8_t* end, Word& word) const {
    p = characters_.skip_spaces(p, end);
    if (p == end) return false;
    word.first = p;
    if (const size_t run = run_length(p, end)) {
      p += run;
    } else if (characters_.is_kind(*p++, kNeverFirst)) {
    } else {
      while (p < end && !(characters_.is_kind(*p, kCheckEnd) && word_ends(p, end))) ++p;
    }
    word.last = p;
    return true;
  }

  // Returns the length of the dash, ellipsis or spaced ellipsis at p, or 0.
  size_t run_length(const uint8_t* p, const uint8_t* end) const {
    if (*p != '.' && *p != '-') return 0;
    const uint8_t* last = p + 1;
    while (last < end && *last == *p) ++last;
    if (last > p + 1) return static_cast<size_t>(last - p);
    return *p == '.' ? spaced_ellipsis(p, end) : 0;
  }
  size_t spaced_ellipsis(const uint8_t* p, const uint8_t* end) const {
    const uint8_t* last = p + 1;
    size_t more = 0;
    for (; last < end; ++more) {
      const size_t space = characters_.space_length(last, end);
      if (!space || last + space == end || last[space] != '.') break;
      last += space + 1;
    }
    return more < 2 ? 0 : static_cast<size_t>(last - p);
  }

  // Returns whether a word ends at p: before white space, dashes, and marks that are words by themselves. A comma ends
  // it only if one of these follows.
  bool word_ends(const uint8_t* p, const uint8_t* end) const {
    if (*p == ',' && ++p == end) return true;
    return characters_.breaks_word_length(p, end) || characters_.space_length(p, end) || run_length(p, end);
  }

  // Returns whether a sentence ends between `word` and the word that follows (Kiss and Strunk 2006, section 4).
  bool ends_between(const Word& word, const Word& following) {
    if (word.last[-1] != '.') return word.is("?!");
    const Form form = describe(word, word_);
    const bool is_ellipsis = word.ends_with_dots(), is_initial = this->is_initial(word);
    const bool is_plain = !form.is_abbreviation && !is_ellipsis && !is_initial && !form.is_number;
    // The most frequent case: a plain word with a period always ends a sentence, and the next word need not be looked
    // at.
    if (is_plain && !(form.flags & kOpensCollocation)) return true;

    const Form next = describe(following, following_);
    const std::string_view next_type = next.ends_sentence || next.is_number ? next.body : next.lowered;
    const uint16_t next_flags = next_type.size() == next.body.size() ? next.flags : tables_.find(next_type);
    // A collocation such as "J. Walter" is never split.
    if ((form.flags & kOpensCollocation) && tables_.is_collocation(form.body, next_type)) return false;
    const uint8_t* p = following.first;
    const uint32_t letter = decode_utf8(p, following.last);
    const bool is_upper = among(unicode11::k_uppercase, letter);
    const Starts starts = starts_sentence(following, next_flags, letter, is_upper);
    // After an abbreviation or an ellipsis, a sentence ends only if the next word clearly starts one: by its case, or
    // because it often starts sentences in the training text.
    if ((form.is_abbreviation || is_ellipsis) && !is_initial)
      return starts == Starts::kYes || (is_upper && (next_flags & kSentenceStarter));
    // After an initial or a number ("J. Bach", German "3. Auflage") no sentence ends if the next word clearly does not
    // start one. After an initial, a capitalised word that the training text never has in lower case is taken for a
    // name.
    if (is_initial || form.is_number) {
      const bool is_name = is_initial && starts == Starts::kUnknown && is_upper && !(next_flags & kLowerContext);
      if (starts == Starts::kNo || is_name) return false;
    }
    return form.ends_sentence;
  }

  enum class Starts { kNo, kYes, kUnknown };

  // Decides from a word's case, compared with its use in the training text, whether it starts a sentence.
  static Starts starts_sentence(const Word& word, uint16_t flags, uint32_t letter, bool is_upper) {
    if (word.is(";:,.!?")) return Starts::kNo;
    if (is_upper) {
      // The training text has the word in lower case, and never capitalised in the middle of a sentence.
      const bool is_common = (flags & kLowerContext) && !(flags & kMiddleUpper);
      return is_common ? Starts::kYes : Starts::kUnknown;
    }
    if (among(unicode11::k_lowercase, letter) && ((flags & kUpperContext) || !(flags & kBeginsLower)))
      return Starts::kNo;
    return Starts::kUnknown;
  }

  Form describe(const Word& word, std::string& buffer) {
    lower_into(word, buffer);
    Form form{};
    form.lowered = buffer;
    form.body = without_period(form.lowered);
    form.flags = tables_.find(form.body);
    const bool ends_in_period = word.last[-1] == '.' && !word.ends_with_dots();
    form.is_abbreviation = ends_in_period && word.size() > 1 && is_abbreviation(form.body, form.flags);
    form.ends_sentence = word.is("?!") || (ends_in_period && !form.is_abbreviation);
    form.is_number = is_number(form.lowered);
    if (form.is_number) {
      form.body = "##number##";
      form.flags = tables_.find(form.body);
    }
    return form;
  }

  static std::string_view without_period(std::string_view type) {
    if (type.size() > 1 && type.back() == '.') type.remove_suffix(1);
    return type;
  }

  bool is_abbreviation(std::string_view body, uint16_t flags) const {
    if (flags & kAbbreviation) return true;
    const size_t hyphen = body.rfind('-');
    return hyphen != std::string_view::npos && (tables_.find(body.substr(hyphen + 1)) & kAbbreviation);
  }

  void lower_into(const Word& word, std::string& buffer) {
    buffer.assign(word.first, word.last);
    if (lower_in_place(buffer)) return;
    text_.clear();
    for (const uint8_t* p = word.first; p < word.last;) text_.push_back(decode_utf8(p, word.last));
    lower(text_, lowered_);
    buffer.clear();
    for (uint32_t cp : lowered_) append_utf8(cp, buffer);
  }

  // Lower-cases ASCII and letters of two bytes. Returns false at a character that needs the general method.
  static bool lower_in_place(std::string& buffer) {
    static const TwoByteLower two_bytes;
    for (size_t i = 0; i < buffer.size(); ++i) {
      const auto byte = static_cast<uint8_t>(buffer[i]);
      if (byte < 0x80) {
        if (byte >= 'A' && byte <= 'Z') buffer[i] = static_cast<char>(byte | 0x20);
        continue;
      }
      if (byte >= 0xE0) return false;
      const uint32_t lowered = two_bytes.of[(byte & 0x1F) << 6 | (static_cast<uint8_t>(buffer[i + 1]) & 0x3F)];
      if (!lowered) return false;
      buffer[i] = static_cast<char>(0xC0 | lowered >> 6);
      buffer[++i] = static_cast<char>(0x80 | (lowered & 0x3F));
    }
    return true;
  }

  // Returns whether the word matches -?[.,]?\d[\d,.-]*
  static bool is_number(std::string_view lowered) {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(lowered.data());
    const uint8_t* const end = p + lowered.size();
    if (p < end && *p == '-') ++p;
    if (p < end && (*p == '.' || *p == ',')) ++p;
    if (p == end || !is_decimal(p, end)) return false;
    while (p < end)
      if (*p == ',' || *p == '.' || *p == '-') ++p;
      else if (!is_decimal(p, end)) return false;
    return true;
  }
  // Returns whether the character at p is a decimal digit of any script, and moves p past it.
  static bool is_decimal(const uint8_t*& p, const uint8_t* end) {
    if (*p < 0x80) return *p >= '0' && *p <= '9' && ++p;
    return among(unicode11::k_decimal, decode_utf8(p, end));
  }

  // Returns whether the word is a single letter and a period.
  bool is_initial(const Word& word) const {
    const uint8_t* p = word.first;
    const uint32_t cp = decode_utf8(p, word.last);
    return p == word.last - 1 && characters_.is_letter(cp);
  }

  const PunktTables& tables_;
  const PunktCharacters& characters_;
  std::string word_, following_;
  Text text_, lowered_;
};

}  // namespace bertdata
