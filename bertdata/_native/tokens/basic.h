// Splits text of any characters into words: cleaning, white space, case, accents and punctuation. Twin of
// tokens/basic.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens/left_out.h"
#include "tokens/wordpiece.h"
#include "unicode/unicode.h"

namespace bertdata {

// Settings of cleaning and splitting.
struct TokenRules {
  bool lower_case, strips_accents;
  bool final_sigma;  // lower-case a capital sigma at a word's end to the final sigma, as Python does
  bool splits_ideographs, drops_unassigned, keeps_special_tokens;
  bool joins_lines;  // the lines of a document follow each other without a space
  uint32_t max_word_chars;
};

// BERT's special tokens that a vocabulary has, with their ids.
class SpecialIds {
 public:
  SpecialIds(const std::vector<std::string>& tokens, const std::vector<uint32_t>& ids) {
    for (size_t i = 0; i < tokens.size(); ++i)
      for (const char* special : {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"})
        if (tokens[i] == special) ids_.emplace_back(tokens[i], ids[i]);
  }

  const uint32_t* find(std::string_view word) const {
    for (const auto& special : ids_)
      if (word == special.first) return &special.second;
    return nullptr;
  }
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }

 private:
  std::vector<std::pair<std::string, uint32_t>> ids_;
};

// Splits text into words and the words into ids (WordPiece).
class WordSplitter {
 public:
  WordSplitter(const TokenRules& rules, const WordPiece& wordpiece, const SpecialIds& special_ids,
               const LeftOut& left_out)
      : rules_(rules), wordpiece_(wordpiece), special_ids_(special_ids), left_out_(left_out) {}

  // Appends the ids of the bytes from `first` to `last`, a part of `text`. Returns false if a left-out code point
  // occurs in them. Throws InvalidUtf8 with the offset in `text`.
  bool split(const uint8_t* text, const uint8_t* first, const uint8_t* last, std::vector<uint32_t>& pieces) {
    const bool knows_all = clean(text, first, last);
    for (size_t i = 0; i < cleaned_.size(); ++i) {
      token_.clear();
      for (; i < cleaned_.size() && !is_python_space(cleaned_[i]); ++i) token_.push_back(cleaned_[i]);
      if (!token_.empty()) split_token(pieces);
    }
    return knows_all;
  }

 private:
  // Writes the cleaned characters to cleaned_, with spaces around ideographs. Returns false if a left-out code point
  // occurs.
  bool clean(const uint8_t* text, const uint8_t* p, const uint8_t* end) {
    const Properties& of = Properties::get();
    cleaned_.clear();
    bool knows_all = true;
    while (p < end) {
      const uint8_t* const at = p;
      const uint32_t cp = decode_utf8(p, end);
      if (cp == kCodePoints) throw InvalidUtf8(static_cast<size_t>(at - text));
      knows_all = knows_all && !left_out_.holds(cp);
      const uint8_t properties = of[cp], character_class = properties & kClassMask;
      if (cp == '\t' || cp == '\n' || cp == '\r' || character_class == kSpace) {
        cleaned_.push_back(' ');
      } else if (cp == 0 || cp == 0xFFFD || character_class == kControl ||
                 (character_class == kUnassigned && rules_.drops_unassigned)) {
        continue;
      } else if (properties & kIdeograph && rules_.splits_ideographs) {
        cleaned_.insert(cleaned_.end(), {' ', cp, ' '});
      } else {
        cleaned_.push_back(cp);
      }
    }
    return knows_all;
  }

  // Splits a white-space token: a special token gets its id, any other is lower-cased, stripped of accents and split
  // at punctuation.
  // "Café!" -> "cafe" and "!"
  void split_token(std::vector<uint32_t>& pieces) {
    if (rules_.keeps_special_tokens && token_[0] == '[') {
      word_.clear();
      for (uint32_t cp : token_) append_utf8(cp, word_);
      if (const uint32_t* id = special_ids_.find(word_)) return pieces.push_back(*id);
    }
    if (rules_.lower_case) {
      lower(token_, changed_, rules_.final_sigma);
      token_.swap(changed_);
    }
    if (rules_.strips_accents) {
      decompose(token_, changed_);
      token_.swap(changed_);
    }
    const Properties& of = Properties::get();
    word_.clear();
    size_t chars = 0;
    const auto end_word = [&] {
      if (chars) wordpiece_.split(word_, chars, pieces);
      word_.clear();
      chars = 0;
    };
    for (uint32_t cp : token_) {
      const uint8_t character_class = of[cp] & kClassMask;
      if (character_class == kMark && rules_.strips_accents) continue;
      if (character_class == kPunctuation) end_word();
      append_utf8(cp, word_);
      ++chars;
      if (character_class == kPunctuation) end_word();
    }
    end_word();
  }

  const TokenRules& rules_;
  const WordPiece& wordpiece_;
  const SpecialIds& special_ids_;
  const LeftOut& left_out_;
  std::string word_;
  Text cleaned_, token_, changed_;
};

}  // namespace bertdata
