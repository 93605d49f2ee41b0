// Finds added tokens (special tokens, for example) in a text. Twin of tokens/bpe/added.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tokens/bpe_characters.h"

namespace bertdata {

// A token that is found in the text as a whole. lstrip, rstrip: it takes the white space on that side with it.
// single_word: it is not found inside a word.
struct AddedToken {
  std::string content;
  uint32_t id;
  bool lstrip, rstrip, single_word;
};

// Finds tokens from left to right with a trie. If several begin at the same byte, the longest is taken.
class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, const CharacterBitsTable& bits)
      : tokens_(std::move(tokens)), bits_(bits), nodes_(1) {
    first_.fill(0);
    for (size_t i = 0; i < tokens_.size(); ++i) add(i);
  }

  // Splits a text. Calls on_text(start, stop) and on_token(start, stop, token) for its parts in order. No part is
  // empty.
  template <class OnText, class OnToken>
  void split(const uint8_t* const text, const uint8_t* const end, OnText&& on_text, OnToken&& on_token) const {
    const uint8_t* done = text;
    for (const uint8_t* p = text; !tokens_.empty() && p < end;) {
      if (!first_[*p]) {
        ++p;
        continue;
      }
      const AddedToken* const token = match(p, end);
      if (!token) {
        ++p;
        continue;
      }
      const uint8_t *start = p, *stop = p + token->content.size();
      p = stop;
      // A rejected token is skipped as a whole, with all tokens that begin inside it.
      if (token->single_word && is_in_word(start, stop, text, end)) continue;
      if (token->lstrip)
        while (start > done && (bits_.before(start) & kSpaceBit)) {
          do --start;
          while ((*start & 0xC0) == 0x80);
        }
      if (token->rstrip) stop = skip_space(stop, end);
      if (done < start) on_text(done, start);
      on_token(start, stop, *token);
      done = stop;
      p = std::max(p, done);
    }
    if (done < end) on_text(done, end);
  }

 private:
  struct Node {
    int32_t token = -1;
    std::vector<std::pair<uint8_t, uint32_t>> children;

    uint32_t child(uint8_t byte) const {  // 0 if there is none (node 0 is the root)
      for (const auto& [c, node] : children)
        if (c == byte) return node;
      return 0;
    }
  };

  void add(size_t index) {
    uint32_t node = 0;
    for (const char c : tokens_[index].content) {
      const uint8_t byte = static_cast<uint8_t>(c);
      uint32_t next = nodes_[node].child(byte);
      if (!next) {
        next = static_cast<uint32_t>(nodes_.size());
        nodes_.emplace_back();
        nodes_[node].children.emplace_back(byte, next);
      }
      node = next;
    }
    if (!node) throw std::invalid_argument("added tokens: one is empty");
    nodes_[node].token = static_cast<int32_t>(index);
    first_[static_cast<uint8_t>(tokens_[index].content[0])] = 1;
  }

  // Returns the longest token that begins at p, or null.
  const AddedToken* match(const uint8_t* p, const uint8_t* end) const {
    int32_t longest = -1;
    for (uint32_t node = 0; p < end; ++p) {
      node = nodes_[node].child(*p);
      if (!node) break;
      if (nodes_[node].token >= 0) longest = nodes_[node].token;
    }
    return longest < 0 ? nullptr : &tokens_[static_cast<size_t>(longest)];
  }

  bool is_in_word(const uint8_t* start, const uint8_t* stop, const uint8_t* text, const uint8_t* end) const {
    return (start > text && (bits_.before(start) & kWordBit)) || (stop < end && (bits_.next(stop, end) & kWordBit));
  }

  const uint8_t* skip_space(const uint8_t* p, const uint8_t* end) const {
    for (const uint8_t* after = p; p < end && (bits_.next(after, end) & kSpaceBit);) p = after;
    return p;
  }

  std::vector<AddedToken> tokens_;
  const CharacterBitsTable& bits_;
  std::vector<Node> nodes_;
  std::array<uint8_t, 256> first_;
};

}  // namespace bertdata
