// Splits text into pre-tokens with hand-written matchers instead of the models' regular expressions. Twin of
// tokens/bpe/pretokens.py, which has the expressions.
#pragma once

#include <cstdint>

#include "tokens/bpe_characters.h"

namespace bertdata {

enum class BpePattern : uint8_t { kGpt2, kLlama3, kQwen2 };

// Finds the ends of pre-tokens.
class Pretokens {
 public:
  Pretokens(BpePattern pattern, const CharacterBitsTable& bits) : pattern_(pattern), bits_(bits) {}

  // Returns the end of the pre-token that starts at p, where p < end.
  const uint8_t* find_end(const uint8_t* p, const uint8_t* end) const {
    return pattern_ == BpePattern::kGpt2 ? gpt2(p, end) : later(p, end);
  }

 private:
  // '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  const uint8_t* gpt2(const uint8_t* p, const uint8_t* end) const {
    if (*p == '\'')
      if (const unsigned length = contraction(p, end, false)) return p + length;
    const uint8_t* after = p;
    const uint8_t kind = bits_.next(after, end) & kKindMask;
    // A single space belongs to the run that follows it: " world" is one pre-token.
    if (*p == ' ' && after < end) {
      const uint8_t second = bits_.next(after, end) & kKindMask;
      if (second != kSpaceBit) return run(after, end, second);
    }
    return kind == kSpaceBit ? spaces(p, end) : run(after, end, kind);
  }

  // Matches the pattern of Llama 3 and Qwen 2. They differ in numbers only: up to three digits together, or each digit
  // alone.
  const uint8_t* later(const uint8_t* p, const uint8_t* end) const {
    if (*p == '\'')
      if (const unsigned length = contraction(p, end, true)) return p + length;
    const uint8_t* after = p;
    const uint8_t kind = bits_.next(after, end) & kKindMask;
    if (kind == kLetterBit) return run(after, end, kLetterBit);
    if (kind == kNumberBit) return pattern_ == BpePattern::kQwen2 ? after : numbers(after, end);
    // Any character except a line break, letter or number may precede a run of letters: "(word" is one pre-token. Only
    // a space may precede a run of other characters.
    if (*p != '\r' && *p != '\n' && after < end) {
      const uint8_t* third = after;
      const uint8_t second = bits_.next(third, end) & kKindMask;
      if (second == kLetterBit) return run(third, end, kLetterBit);
      if (*p == ' ' && !second) return line_ends(run(third, end, 0), end);
    }
    if (!kind) return line_ends(run(after, end, 0), end);
    const uint8_t* const stop = run(after, end, kSpaceBit);
    for (const uint8_t* last = stop; last > p; --last)  // \s*[\r\n]+: end after the last line break of the white space
      if (last[-1] == '\r' || last[-1] == '\n') return last;
    return spaces(p, end);
  }

  // Returns the end of the run of characters of class `kind` that p is in.
  const uint8_t* run(const uint8_t* p, const uint8_t* end, uint8_t kind) const {
    while (p < end) {
      const uint8_t* after = p;
      if ((bits_.next(after, end) & kKindMask) != kind) break;
      p = after;
    }
    return p;
  }

  // Returns the end of up to two more numbers, so that at most three stay together.
  const uint8_t* numbers(const uint8_t* p, const uint8_t* end) const {
    for (int i = 0; i < 2 && p < end; ++i) {
      const uint8_t* after = p;
      if (!(bits_.next(after, end) & kNumberBit)) break;
      p = after;
    }
    return p;
  }

  // Returns the end of the white space at p. The last white-space character is left to the following text, unless it
  // is the only one.
  // "a   b": the spaces split into "  " and " b"
  const uint8_t* spaces(const uint8_t* p, const uint8_t* end) const {
    const uint8_t *at = p, *last = p;
    while (at < end) {
      const uint8_t* after = at;
      if (!(bits_.next(after, end) & kSpaceBit)) return last > p ? last : at;
      last = at;
      at = after;
    }
    return end;
  }

  static const uint8_t* line_ends(const uint8_t* p, const uint8_t* end) {
    while (p < end && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }

  // Returns the length of 's, 't, 're, 've, 'm, 'll or 'd at p, or 0. If any_case, the long s (U+017F) is an s too.
  static unsigned contraction(const uint8_t* p, const uint8_t* end, bool any_case) {
    const auto left = end - p;
    const auto letter = [&](int i) -> uint8_t {
      if (left <= i) return 0;
      return any_case && p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 0x20 : p[i];
    };
    const uint8_t first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    if (first == 'l' && second == 'l') return 3;
    return any_case && first == 0xC5 && second == 0xBF ? 3 : 0;
  }

  BpePattern pattern_;
  const CharacterBitsTable& bits_;
};

}  // namespace bertdata
