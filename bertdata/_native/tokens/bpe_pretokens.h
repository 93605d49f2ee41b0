// Text to pre-tokens, by hand-written matchers of the known patterns. Twin of tokens/bpe/pretokens.py.
#pragma once

#include <cstdint>

#include "tokens/bpe_characters.h"

namespace bertdata {

enum class BpePattern : uint8_t { kGpt2, kLlama3, kQwen2 };

class Pretokens {
 public:
  Pretokens(BpePattern pattern, const CharacterBitsTable& bits) : pattern_(pattern), bits_(bits) {}

  // End of the pre-token at p (p < end).
  const uint8_t* find_end(const uint8_t* p, const uint8_t* end) const {
    return pattern_ == BpePattern::kGpt2 ? gpt2(p, end) : later(p, end);
  }

 private:
  const uint8_t* gpt2(const uint8_t* p, const uint8_t* end) const {
    if (*p == '\'')
      if (const unsigned length = contraction(p, end, false)) return p + length;
    const uint8_t* after = p;
    const uint8_t kind = bits_.next(after, end) & kKindMask;
    if (*p == ' ' && after < end) {
      const uint8_t second = bits_.next(after, end) & kKindMask;
      if (second != kSpaceBit) return run(after, end, second);
    }
    return kind == kSpaceBit ? spaces(p, end) : run(after, end, kind);
  }

  // Llama 3's and Qwen 2's, which differ in their numbers.
  const uint8_t* later(const uint8_t* p, const uint8_t* end) const {
    if (*p == '\'')
      if (const unsigned length = contraction(p, end, true)) return p + length;
    const uint8_t* after = p;
    const uint8_t kind = bits_.next(after, end) & kKindMask;
    if (kind == kLetterBit) return run(after, end, kLetterBit);
    if (kind == kNumberBit) return pattern_ == BpePattern::kQwen2 ? after : numbers(after, end);
    if (*p != '\r' && *p != '\n' && after < end) {
      const uint8_t* third = after;
      const uint8_t second = bits_.next(third, end) & kKindMask;
      if (second == kLetterBit) return run(third, end, kLetterBit);
      if (*p == ' ' && !second) return line_ends(run(third, end, 0), end);
    }
    if (!kind) return line_ends(run(after, end, 0), end);
    const uint8_t* const stop = run(after, end, kSpaceBit);
    for (const uint8_t* last = stop; last > p; --last)  // up to the last line end
      if (last[-1] == '\r' || last[-1] == '\n') return last;
    return spaces(p, end);
  }

  // End of the run of characters of one kind that goes on at p.
  const uint8_t* run(const uint8_t* p, const uint8_t* end, uint8_t kind) const {
    while (p < end) {
      const uint8_t* after = p;
      if ((bits_.next(after, end) & kKindMask) != kind) break;
      p = after;
    }
    return p;
  }

  // One or two more numbers.
  const uint8_t* numbers(const uint8_t* p, const uint8_t* end) const {
    for (int i = 0; i < 2 && p < end; ++i) {
      const uint8_t* after = p;
      if (!(bits_.next(after, end) & kNumberBit)) break;
      p = after;
    }
    return p;
  }

  // End of white space. Its last character is left to what comes behind it, unless it is the only one.
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

  // Length of 's, 't, 're, 've, 'm, 'll or 'd at p, else 0. The long s is an s where case does not count.
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
