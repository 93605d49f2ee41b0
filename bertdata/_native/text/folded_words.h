// Folds the words of a text for comparison: lower-case, without accents and punctuation. Twin of
// text/selection/words.py.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "column.h"
#include "unicode/unicode.h"

namespace bertdata {

// A word: where its bytes start, and the hash of its bytes.
struct FoldedWord {
  uint64_t start;  // index in `bytes` of the word's first byte
  uint64_t hash;
};

// Folded words, each followed by a space in `bytes`. The last item of `words` is not a word: it marks the end.
struct FoldedWords {
  Column<uint8_t> bytes;
  std::vector<FoldedWord> words;

  size_t count() const { return words.empty() ? 0 : words.size() - 1; }
  void clear() {
    bytes.truncate(0);
    words.clear();
  }
};

// Folds the words of texts. Its buffers are reused for the next text.
class WordFolder {
 public:
  // Replaces the contents of `out` by the words of the text. Throws InvalidUtf8.
  void fold(const uint8_t* text, size_t size, FoldedWords& out) {
    out.clear();
    const uint8_t *p = text, *const end = text + size;
    while (p < end) {
      const uint8_t* const first = p;
      uint8_t bits = 0;
      while (p < end && !is_ascii_space(*p)) bits |= *p++;
      if (bits & 0x80)
        fold_any(text, first, p, out);
      else
        fold_ascii(first, p, out);
      if (p < end) ++p;
    }
    out.words.push_back({out.bytes.size(), 0});
  }

 private:
  static constexpr uint64_t kSeed = 0xCBF29CE484222325ull, kPrime = 0x100000001B3ull;
  enum AsciiKind : uint8_t { kDropped = 0, kSeparator = 1 };  // any other value is the character itself, lower-cased

  static bool is_ascii_space(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

  static const std::array<uint8_t, 128>& ascii_kinds() {
    static const std::array<uint8_t, 128> kinds = [] {
      const Properties& of = Properties::get();
      std::array<uint8_t, 128> found{};
      for (uint8_t c = 0; c < 128; ++c) {
        const uint8_t character_class = of[c] & kClassMask;
        found[c] = c == 0 || character_class == kControl ? static_cast<uint8_t>(kDropped)
                   : character_class == kPunctuation     ? static_cast<uint8_t>(kSeparator)
                   : c >= 'A' && c <= 'Z'                ? static_cast<uint8_t>(c + 32)
                                                         : c;
      }
      return found;
    }();
    return kinds;
  }

  // ASCII text: characters are looked up, written and hashed (FNV-1a) in a single pass.
  static void fold_ascii(const uint8_t* p, const uint8_t* end, FoldedWords& out) {
    const auto& kinds = ascii_kinds();
    uint8_t *const base = out.bytes.room(2 * static_cast<size_t>(end - p) + 1), *to = base, *start = base;
    const size_t before = out.bytes.size();
    uint64_t hash = kSeed;
    const auto end_word = [&] {
      if (to == start) return;
      out.words.push_back({before + static_cast<size_t>(start - base), hash});
      *to++ = ' ';
      start = to;
      hash = kSeed;
    };
    for (; p < end; ++p) {
      const uint8_t kind = kinds[*p];
      if (kind == kSeparator) {
        end_word();
      } else if (kind != kDropped) {
        *to++ = kind;
        hash = (hash ^ kind) * kPrime;
      }
    }
    end_word();
    out.bytes.added(static_cast<size_t>(to - base));
  }

  // Other text: decode it, and split it at white space and around ideographs.
  void fold_any(const uint8_t* text, const uint8_t* p, const uint8_t* end, FoldedWords& out) {
    const Properties& of = Properties::get();
    token_.clear();
    while (p < end) {
      const uint8_t* const at = p;
      const uint32_t cp = decode_utf8(p, end);
      if (cp == kCodePoints) throw InvalidUtf8(static_cast<size_t>(at - text));
      const uint8_t properties = of[cp], character_class = properties & kClassMask;
      if (cp == 0 || cp == 0xFFFD || character_class == kControl) continue;
      if (is_python_space(cp) || properties & kIdeograph) fold_token(out);
      if (is_python_space(cp)) continue;
      token_.push_back(cp);
      if (properties & kIdeograph) fold_token(out);
    }
    fold_token(out);
  }

  void fold_token(FoldedWords& out) {
    if (token_.empty()) return;
    lower(token_, changed_);
    decompose(changed_, token_);
    const Properties& of = Properties::get();
    word_.clear();
    for (uint32_t cp : token_) {
      const uint8_t character_class = of[cp] & kClassMask;
      if (character_class == kPunctuation)
        end_word(out);
      else if (character_class != kMark)
        append_utf8(cp, word_);
    }
    end_word(out);
    token_.clear();
  }

  void end_word(FoldedWords& out) {
    if (word_.empty()) return;
    uint64_t hash = kSeed;
    for (char c : word_) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
    out.words.push_back({out.bytes.size(), hash});
    uint8_t* to = out.bytes.room(word_.size() + 1);
    for (char c : word_) *to++ = static_cast<uint8_t>(c);
    *to = ' ';
    out.bytes.added(word_.size() + 1);
    word_.clear();
  }

  Text token_, changed_;
  std::string word_;
};

}  // namespace bertdata
