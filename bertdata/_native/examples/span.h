// Blocks of text, as a single segment each, with masked spans (SpanBERT). Twin of examples/span/reference.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "column.h"
#include "examples/documents.h"
#include "examples/mt19937.h"
#include "examples/span_blocks.h"
#include "examples/span_masking.h"
#include "examples/span_streams.h"

namespace bertdata {

// Settings of blocks with masked spans. as_original: cut, draw and order the blocks as SpanBERT's program does.
struct SpanBlockRules {
  uint32_t max_seq_length, cls, sep;
  double masked_lm_prob;
  bool masks, as_original, tells_words;
  SpanRules spans;
};

// Finished examples as columns, without padding. examples/span/batch.py describes the columns.
template <class Id>
struct SpanColumns {
  Column<Id> ids, labels;
  Column<uint32_t> ends, mask_ends, span_ends;
  Column<uint16_t> positions, lefts, rights;
  Column<uint8_t> word_starts;  // filled only if tells_words
  bool tells_words;
};

// All examples of one shard. The text is copied once. An example holds its range of the text and its masks: 24 bytes,
// and 4 to 6 bytes for each mask.
template <class Id>
class SpanExamples {
 public:
  // Cuts the documents into blocks, masks them once per pass and shuffles the examples.
  // starts: 1 for each id that starts a word, else 0.
  // keys: key of the random streams of each pass, so its size is the number of passes.
  // seed: seed of the final shuffle.
  // numpy_seed: seed of the single stream that SpanBERT's program draws from. Used only with rules.as_original,
  // where the examples are not shuffled.
  SpanExamples(const DocumentView<Id>& documents, std::vector<uint8_t>&& starts, const SpanBlockRules& rules,
               const std::vector<Id>& replacements, const std::vector<uint64_t>& keys,
               const std::vector<uint32_t>& seed, uint32_t numpy_seed)
      : rules_(rules), starts_(std::move(starts)) {
    const size_t size = documents.size();
    lost_ = size;
    if (size) std::memcpy(text_.room(size), documents.ids, size * sizeof(Id));
    text_.added(size);
    SpanBlockCutter<Id>(rules.max_seq_length - 2, rules.as_original).cut(documents, [&](uint32_t start, uint32_t end) {
      examples_.push(Block{start, 0, static_cast<uint16_t>(end - start), 0});
      lost_ -= end - start;  // blocks do not overlap, and every pass has the same blocks
    });
    const size_t blocks = examples_.size();
    if (blocks * keys.size() > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 examples in one shard");
    for (size_t pass = 1; pass < keys.size(); ++pass)
      for (size_t block = 0; block < blocks; ++block) examples_.push(Block(examples_[block]));
    mask_blocks(replacements, keys, static_cast<uint32_t>(blocks), numpy_seed);
    put_in_order(seed);
    if (!rules_.tells_words) starts_ = {};
  }

  size_t size() const { return examples_.size(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t masked() const { return positions_.size(); }
  uint64_t lost() const { return lost_; }

  // Returns examples start, start + step, ... below stop, in their final order.
  SpanColumns<Id> batch(size_t start, size_t stop, size_t step) const {
    SpanColumns<Id> out{};
    out.tells_words = rules_.tells_words;
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    const size_t count = start < stop ? (stop - start - 1) / step + 1 : 0;
    out.ids.room(count * rules_.max_seq_length);
    for (size_t i = start; i < stop; i += step) append(examples_[order_[i]], out);
    return out;
  }

 private:
  // An example: its range of text_, and its entries in the lists of masks.
  struct Block {
    uint32_t start;  // index of the first id in text_
    uint64_t first_mask;
    uint16_t length, masks;
  };

  void mask_blocks(const std::vector<Id>& replacements, const std::vector<uint64_t>& keys, uint32_t blocks,
                   uint32_t numpy_seed) {
    // SpanBERT's program draws all masks from one stream, and random ids from the text. Otherwise every block has
    // its stream, so that a block's masks do not depend on the blocks before it.
    NumpyStream of_all(numpy_seed);
    SpanMasker masker(rules_.spans);
    const IdPool<Id> pool = rules_.as_original
                                ? IdPool<Id>{text_.data(), static_cast<uint32_t>(text_.size())}
                                : IdPool<Id>{replacements.data(), static_cast<uint32_t>(replacements.size())};
    for (size_t i = 0; i < examples_.size(); ++i) {
      Block& block = examples_[i];
      tokens_ += block.length + 2u;
      block.first_mask = positions_.size();
      if (!rules_.masks) continue;
      if (rules_.as_original) {
        mask(block, masker, pool, of_all);
      } else {
        BlockStream stream(keys[i / blocks], i % blocks);
        mask(block, masker, pool, stream);
      }
    }
  }

  template <class Stream>
  void mask(Block& block, SpanMasker& masker, const IdPool<Id>& pool, Stream& stream) {
    // Mask a copy of the block, then keep only the positions and what was written there. The text stays unmasked,
    // because the other passes mask it too and because it holds the labels.
    const uint32_t most = std::min<uint32_t>(rules_.spans.most, block.length);
    shown_.assign(&text_[block.start], &text_[block.start] + block.length);
    originals_.resize(most);
    uint16_t* positions = positions_.room(most);
    const uint32_t count = masker.mask(shown_.data(), &starts_[block.start], block.length, rules_.masked_lm_prob, pool,
                                       stream, positions, originals_.data());
    Id* replacements = replacements_.room(count);
    for (uint32_t m = 0; m < count; ++m) replacements[m] = shown_[positions[m]];
    positions_.added(count);
    replacements_.added(count);
    block.masks = static_cast<uint16_t>(count);
  }

  void put_in_order(const std::vector<uint32_t>& seed) {
    uint32_t* order = order_.room(examples_.size());
    for (uint32_t i = 0; i < examples_.size(); ++i) order[i] = i;
    order_.added(examples_.size());
    if (!rules_.as_original) RandomStream(seed).shuffle(order, static_cast<uint32_t>(order_.size()));
    examples_.fit();
    positions_.fit();
    replacements_.fit();
  }

  // Appends a finished example. Positions and span boundaries count from [CLS], hence the + 1.
  void append(const Block& block, SpanColumns<Id>& out) const {
    Id* ids = out.ids.room(block.length + 2u);
    ids[0] = static_cast<Id>(rules_.cls);
    std::memcpy(ids + 1, &text_[block.start], block.length * sizeof(Id));
    ids[block.length + 1u] = static_cast<Id>(rules_.sep);
    for (uint64_t m = block.first_mask; m < block.first_mask + block.masks; ++m) {
      Id& shown = ids[positions_[m] + 1u];
      out.positions.push(static_cast<uint16_t>(positions_[m] + 1u));
      out.labels.push(shown);
      shown = replacements_[m];
    }
    span_boundaries(positions_.data() + block.first_mask, block.masks, block.length, rules_.spans.are_external,
                    [&](uint32_t left, uint32_t right) {
                      out.lefts.push(static_cast<uint16_t>(left + 1));
                      out.rights.push(static_cast<uint16_t>(right + 1));
                    });
    if (rules_.tells_words) append_starts(block, out.word_starts);
    out.ids.added(block.length + 2u);
    out.ends.push(static_cast<uint32_t>(out.ids.size()));
    out.mask_ends.push(static_cast<uint32_t>(out.positions.size()));
    out.span_ends.push(static_cast<uint32_t>(out.lefts.size()));
  }

  // Appends the example's word starts. [CLS], the id after it and [SEP] start words.
  void append_starts(const Block& block, Column<uint8_t>& out) const {
    uint8_t* starts = out.room(block.length + 2u);
    std::memcpy(starts + 1, &starts_[block.start], block.length);
    starts[0] = starts[1] = starts[block.length + 1u] = 1;
    out.added(block.length + 2u);
  }

  const SpanBlockRules rules_;
  std::vector<uint8_t> starts_;  // 1 for each id of text_ that starts a word
  Column<Id> text_;
  Column<Block> examples_;
  Column<uint16_t> positions_;  // counted from the block's first id, without [CLS]
  Column<Id> replacements_;
  Column<uint32_t> order_;
  std::vector<Id> shown_, originals_;
  uint64_t tokens_ = 0, lost_ = 0;
};

}  // namespace bertdata
