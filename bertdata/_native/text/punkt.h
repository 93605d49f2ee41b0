// Punkt sentence boundaries as three releases of NLTK place them. Twin of text/punkt/boundaries.py.
#pragma once

#include <cstdint>
#include <cstring>

#include "column.h"
#include "text/punkt_characters.h"
#include "text/punkt_tables.h"
#include "text/punkt_words.h"
#include "unicode/unicode.h"

namespace bertdata {

// Splits text into sentences with the tables of a trained Punkt model.
class Punkt {
 public:
  // The bytes [first, last) of a sentence.
  struct Sentence {
    const uint8_t *first, *last;
  };

  Punkt(PunktTables tables, PunktVariant variant) : tables_(std::move(tables)), characters_(variant) {}

  // Calls take(sentence) for each sentence of a paragraph, in order. Throws InvalidUtf8 before the first call.
  template <class Take>
  void split(const uint8_t* text, size_t size, Take&& take) const {
    check_utf8(text, size);
    PunktWords words(tables_, characters_);
    split_valid(text, text + size, words, take);
  }

  // Appends the sentences of each line, each on its own line. Sentences are stripped of white space. If keeps_indent,
  // the indent of a line's first sentence stays. An empty line stays empty.
  void segment_lines(const uint8_t* text, size_t size, bool keeps_indent, Column<uint8_t>& out) const {
    check_utf8(text, size);
    PunktWords words(tables_, characters_);
    out.room(size + size / 64 + 1);
    const auto write = [&](Sentence s) {
      if (!keeps_indent) s = stripped(s);
      const size_t length = static_cast<size_t>(s.last - s.first);
      uint8_t* to = out.room(length + 1);
      std::memcpy(to, s.first, length);
      to[length] = '\n';
      out.added(length + 1);
    };
    for (const uint8_t *line = text, *const end = text + size; line < end;) {
      const auto* newline = static_cast<const uint8_t*>(std::memchr(line, '\n', static_cast<size_t>(end - line)));
      const uint8_t* const last = newline ? newline : end;
      if (line == last)
        out.push('\n');
      else
        split_valid(line, last, words, write);
      line = last + 1;
    }
  }

 private:
  // An end mark that may end a sentence. resume: where the next sentence would start. stop: end of the candidate's
  // context, which is the end of the next word or of the punctuation directly after the mark.
  struct Candidate {
    const uint8_t *place, *resume, *stop;
  };

  // "(Dr. No came.) He left.": "Dr." has the context "(Dr. No", in which no sentence ends. "came." has the context
  // "came.)" and ends the sentence "(Dr. No came.". The next sentence starts at ")", which Joiner then moves to the
  // first one.
  template <class Take>
  void split_valid(const uint8_t* first, const uint8_t* end, PunktWords& words, Take& take) const {
    Joiner<Take> joiner(take, characters_);
    const uint8_t* sentence = first;
    for_each_context(first, end, [&](const uint8_t* start, const Candidate& c) {
      if (!words.contain_sentence_end(start, c.stop)) return;
      joiner.add({sentence, c.place + 1});
      sentence = c.resume;
    });
    joiner.add({sentence, without_trailing_space(first, end)});
    joiner.finish();
  }

  // Calls decide(start, candidate) for each candidate, with the start of its context: the word that the candidate
  // ends. Of several candidates in one word only the last counts: "Really?!)" has a single candidate. See _contexts in
  // text/punkt/boundaries.py for the differences between the variants.
  template <class Decide>
  void for_each_context(const uint8_t* first, const uint8_t* end, Decide&& decide) const {
    const uint8_t* start = first;
    Candidate held{}, candidate{};
    for (const uint8_t* p = first; (p = find_end_mark(p, end)) < end; ++p) {
      if (!is_candidate(p, end, candidate)) continue;
      // `held` is the last candidate seen. It is decided on only when the next candidate turns out to be in another
      // word, that is, when there is white space between them.
      const uint8_t* const apart = after_last_space(held.place ? held.place + 1 : next_character(first, end), p);
      if (held.place && (apart || (characters_.counts_first_mark() && held.place == start))) decide(start, held);
      if (apart) start = apart;
      held = candidate;
    }
    if (held.place) decide(start, held);
  }

  // Returns the next . ? or ! at p or later, or end. Looks at eight bytes at a time.
  const uint8_t* find_end_mark(const uint8_t* p, const uint8_t* end) const {
    for (uint64_t eight; end - p >= 8; p += 8) {
      std::memcpy(&eight, p, 8);
      if (holds(eight, '.') | holds(eight, '?') | holds(eight, '!')) break;
    }
    while (p < end && !characters_.is_kind(*p, kEndMark)) ++p;
    return p;
  }

  // Returns nonzero if one of the eight bytes is the character. The XOR makes such a byte 0, and subtracting 1 from a
  // 0 byte borrows into its top bit.
  static uint64_t holds(uint64_t eight, char character) {
    const uint64_t ones = 0x0101010101010101ull, apart = eight ^ ones * static_cast<uint8_t>(character);
    return (apart - ones) & ~apart & ones << 7;
  }

  // Returns whether the end mark at p is followed by white space and a word, or by punctuation that ends a word.
  bool is_candidate(const uint8_t* p, const uint8_t* end, Candidate& candidate) const {
    const uint8_t* const next = p + 1;
    if (next == end) return false;
    if (const size_t length = characters_.breaks_word_length(next, end)) {
      candidate = {p, next, next + length};
      return true;
    }
    const uint8_t* const word = characters_.skip_spaces(next, end);
    if (word == next || word == end) return false;
    candidate = {p, word, characters_.find_space(word, end)};
    return true;
  }

  static const uint8_t* next_character(const uint8_t* p, const uint8_t* end) {
    decode_utf8(p, end);
    return p;
  }

  // Returns the place after the last space between the two places, or null if there is none.
  const uint8_t* after_last_space(const uint8_t* first, const uint8_t* p) const {
    while (p > first) {
      const uint8_t* const character = step_back(first, p);
      if (characters_.is_separator(character, p)) return p;
      p = character;
    }
    return nullptr;
  }

  Sentence stripped(Sentence s) const {
    const uint8_t* const first = characters_.without_leading_space(s.first, s.last);
    return {first, without_trailing_space(first, s.last)};
  }

  // Returns the end of the text without trailing white space, as str.rstrip().
  const uint8_t* without_trailing_space(const uint8_t* first, const uint8_t* end) const {
    while (first < end) {
      const uint8_t* const character = step_back(first, end);
      if (!characters_.stripped_length(character, end)) break;
      end = character;
    }
    return end;
  }

  // Passes sentences on, and moves closing quotes and brackets from the start of a sentence to the end of the one
  // before.
  template <class Take>
  class Joiner {
   public:
    Joiner(Take& take, const PunktCharacters& characters) : take_(take), characters_(characters) {}

    void add(Sentence next) {
      if (begun_) {
        const uint8_t* const closed = after_closing(next);
        if (closed > next.first) {
          held_.last = closed;
          next.first = characters_.skip_spaces(closed, next.last);
        }
        finish();
      }
      held_ = next;
      begun_ = true;
    }
    void finish() {
      if (held_.first < held_.last) take_(held_);
    }

   private:
    // Returns the place after the closing marks at the sentence's start, if white space, a dash or nothing follows
    // them. Else returns the sentence's start.
    const uint8_t* after_closing(const Sentence& s) const {
      const uint8_t* p = s.first;
      while (p < s.last)
        if (const size_t length = characters_.closing_length(p, s.last)) p += length;
        else break;
      const bool is_dash = s.last - p > 1 && p[0] == '-' && p[1] == '-';
      return p >= s.last || characters_.space_length(p, s.last) || is_dash ? p : s.first;
    }

    Take& take_;
    const PunktCharacters& characters_;
    Sentence held_{};
    bool begun_ = false;
  };

  PunktTables tables_;
  PunktCharacters characters_;
};

}  // namespace bertdata
