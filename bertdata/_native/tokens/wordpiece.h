// Greedy longest-match WordPiece with a trie of the vocabulary's bytes. Twin of tokens/wordpiece.py.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "column.h"

namespace bertdata {

// Trie of tokens. All edges are in one open-addressing hash table with the key node << 8 | byte, which needs less
// memory than a table of 256 children for each node, and no pointers.
class Trie {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  Trie() : edges_(1 << 12, Edge{kNone, 0}), ids_{kNone} {}

  void insert(std::string_view token, uint32_t id) {
    uint32_t node = 0;
    for (unsigned char byte : token) node = child_or_new(node, byte);
    ids_[node] = id;
  }

  // Returns the child of a node for a byte, or kNone.
  uint32_t child(uint32_t node, uint8_t byte) const {
    const uint32_t key = node << 8 | byte;
    for (size_t slot = hash(key);; slot = (slot + 1) & (edges_.size() - 1)) {
      if (edges_[slot].key == key) return edges_[slot].to;
      if (edges_[slot].key == kNone) return kNone;
    }
  }

  // Returns the id of the token that ends at a node, or kNone.
  uint32_t id(uint32_t node) const { return ids_[node]; }

 private:
  struct Edge {
    uint32_t key, to;
  };

  size_t hash(uint32_t key) const { return (key * 0x9E3779B97F4A7C15ull >> 32) & (edges_.size() - 1); }

  uint32_t child_or_new(uint32_t node, uint8_t byte) {
    const uint32_t key = node << 8 | byte;
    size_t slot = hash(key);
    for (; edges_[slot].key != kNone; slot = (slot + 1) & (edges_.size() - 1))
      if (edges_[slot].key == key) return edges_[slot].to;
    // A key is 32 bits, so 24 bits are left for the node.
    if (ids_.size() >= (1u << 24) - 1) throw std::length_error("vocabulary has more than 16 million prefixes");
    const uint32_t node_made = static_cast<uint32_t>(ids_.size());
    edges_[slot] = {key, node_made};
    ids_.push_back(kNone);
    if (2 * ids_.size() > edges_.size()) grow();
    return node_made;
  }

  void grow() {
    std::vector<Edge> old(edges_.size() * 2, Edge{kNone, 0});
    old.swap(edges_);
    for (const Edge& edge : old) {
      if (edge.key == kNone) continue;
      size_t slot = hash(edge.key);
      while (edges_[slot].key != kNone) slot = (slot + 1) & (edges_.size() - 1);
      edges_[slot] = edge;
    }
  }

  std::vector<Edge> edges_;
  std::vector<uint32_t> ids_;  // by node: id of the token that ends there, or kNone
};

// Splits words into the tokens of a vocabulary.
class WordPiece {
 public:
  WordPiece(const std::vector<std::string>& tokens, const std::vector<uint32_t>& ids, uint32_t unknown,
            uint32_t max_word_chars)
      : unknown_(unknown), max_word_chars_(max_word_chars) {
    for (size_t i = 0; i < tokens.size(); ++i) trie_.insert(tokens[i], ids[i]);
    // Tokens that continue a word start with "##". Their common prefix is followed only once, here.
    continuation_ = trie_.child(0, '#');
    if (continuation_ != Trie::kNone) continuation_ = trie_.child(continuation_, '#');
  }

  // Appends the ids of a word in UTF-8 that has `chars` code points. A word that is too long, or that has a part
  // without any matching token, becomes a single unknown id.
  // "unable" -> un ##able
  void split(std::string_view word, size_t chars, std::vector<uint32_t>& out) const {
    const size_t before = out.size();
    if (chars > max_word_chars_) return out.push_back(unknown_);
    for (size_t start = 0; start < word.size();) {
      uint32_t node = start ? continuation_ : 0, best = Trie::kNone;
      size_t best_end = start;
      // Walk down the trie as long as some token has this prefix, and remember the longest token on the way.
      for (size_t i = start; i < word.size() && node != Trie::kNone;) {
        node = trie_.child(node, static_cast<uint8_t>(word[i++]));
        if (node != Trie::kNone && trie_.id(node) != Trie::kNone) best = trie_.id(node), best_end = i;
      }
      if (best == Trie::kNone) {
        // No token fits here, so the tokens before it are dropped too.
        out.resize(before);
        return out.push_back(unknown_);
      }
      out.push_back(best);
      start = best_end;
    }
  }

 private:
  Trie trie_;
  uint32_t continuation_, unknown_, max_word_chars_;
};

}  // namespace bertdata
