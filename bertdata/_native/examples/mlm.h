// Masked blocks of one segment: cuts documents into blocks and masks each block from its random stream.
// Twin of examples/mlm/blocks.py and examples/mlm/reference.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "column.h"
#include "examples/documents.h"
#include "examples/dynamic_masking.h"
#include "examples/mt19937.h"

namespace bertdata {

// Where a block must end. The values are in the order of the Python twin.
enum class Breaks : uint8_t { kNone, kComplete, kCompleteDoc, kEos };

// Settings of blocks and masks. masks: false keeps the blocks unmasked, and then nothing is drawn for masks.
struct MlmRules {
  Breaks breaks;
  uint32_t max_seq_length, cls, sep;
  double masked_lm_prob;
  bool masks;
  MaskingRules masking;
};

// Finished examples as columns, without padding. examples/mlm/batch.py describes the columns.
template <class Id>
struct MlmColumns {
  Column<Id> ids, labels;
  Column<uint32_t> ends, mask_ends;
  Column<uint16_t> positions;
  bool tells_words;
  Column<uint8_t> word_starts;  // one per id, filled only if tells_words
};

// All examples of one shard. The text is copied once, with an end token after each sentence. An example holds its
// range of that text and its masks: 28 bytes, and 4 to 6 bytes for each mask.
template <class Id>
class MlmExamples {
 public:
  // Cuts the documents into blocks, masks them once per pass and shuffles the examples.
  // tells_words: batches include word starts. `documents` must have them.
  // keys: key of the mask streams of each pass, so its size is the number of passes.
  // seed: seed of the final shuffle.
  MlmExamples(const DocumentView<Id>& documents, const MlmRules& rules, bool tells_words,
              const std::vector<uint64_t>& keys, const std::vector<uint32_t>& seed)
      : rules_(rules), longest_(rules.max_seq_length - 1), tells_words_(tells_words) {
    copy_text(documents);
    if (documents.word_starts) copy_word_starts(documents);
    mask_blocks(keys);
    uint32_t* order = order_.room(examples_.size());
    for (uint32_t i = 0; i < examples_.size(); ++i) order[i] = i;
    order_.added(examples_.size());
    RandomStream(seed).shuffle(order_.data(), static_cast<uint32_t>(order_.size()));
    examples_.fit();
    positions_.fit();
    replacements_.fit();
  }

  size_t size() const { return examples_.size(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t masked() const { return positions_.size(); }
  uint64_t lost() const { return 0; }  // a block that is too long is split, so no id is lost

  // Returns examples start, start + step, ... below stop, in their final order.
  MlmColumns<Id> batch(size_t start, size_t stop, size_t step) const {
    MlmColumns<Id> out;
    out.tells_words = tells_words_;
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    const size_t count = start < stop ? (stop - start - 1) / step + 1 : 0;
    out.ids.room(count * rules_.max_seq_length);
    out.positions.room(count * rules_.masking.most);
    out.labels.room(count * rules_.masking.most);
    for (size_t i = start; i < stop; i += step) {
      if (i + 16 * step < stop) __builtin_prefetch(&examples_[order_[i + 16 * step]]);
      if (i + 8 * step < stop) prefetch_text(examples_[order_[i + 8 * step]]);
      append(examples_[order_[i]], out);
    }
    return out;
  }

 private:
  // An example: its range of text_, and its entries in the lists of masks.
  struct Block {
    uint64_t start;  // index of the first id in text_
    uint64_t first_mask;
    uint16_t length, masks;
  };

  // Copies the sentences that have ids, with an end token after each, and cuts the text into blocks on the way.
  void copy_text(const DocumentView<Id>& documents) {
    const uint32_t sentences = documents.first_sentence(documents.documents);
    text_.room(size_t{documents.first_id(sentences)} + sentences);
    for (uint32_t document = 0; document < documents.documents; ++document) {
      for (uint32_t s = documents.first_sentence(document); s < documents.document_ends[document]; ++s) {
        const uint32_t first = documents.first_id(s), count = documents.sentence_ends[s] - first;
        if (!count) continue;
        if (starts_block(count + 1)) close_block();
        std::memcpy(text_.room(count + 1), documents.ids + first, count * sizeof(Id));
        text_.added(count);
        text_.push(static_cast<Id>(rules_.sep));
      }
      if (rules_.breaks == Breaks::kCompleteDoc) close_block();
    }
    close_block();
  }

  // Copies the word starts to starts_, in step with text_. An end token and the id after it start words.
  void copy_word_starts(const DocumentView<Id>& documents) {
    uint8_t* starts = starts_.room(text_.size());
    const uint32_t sentences = documents.first_sentence(documents.documents);
    for (uint32_t s = 0; s < sentences; ++s) {
      const uint32_t first = documents.first_id(s), count = documents.sentence_ends[s] - first;
      if (!count) continue;
      std::memcpy(starts, documents.word_starts + first, count);
      starts[0] = starts[count] = 1;
      starts += count + 1;
    }
    starts_.added(text_.size());
  }

  // Returns whether the open block must end before a line of `line` ids.
  bool starts_block(uint32_t line) const {
    if (rules_.breaks == Breaks::kNone) return false;
    return rules_.breaks == Breaks::kEos || text_.size() - open_ + line > longest_;
  }

  // Ends the open block here and splits it if it is too long.
  void close_block() {
    for (; open_ < text_.size(); open_ += std::min<uint64_t>(longest_, text_.size() - open_)) {
      const uint16_t length = static_cast<uint16_t>(std::min<uint64_t>(longest_, text_.size() - open_));
      // A block of only the end token (left over by the split) would have nothing to mask.
      if (length == 1 && text_[open_] == rules_.sep) continue;
      examples_.push(Block{open_, 0, length, 0});
    }
  }

  // Masks every block once per pass. The blocks of the first pass are in examples_ already, so they are updated in
  // place, and the other passes append copies.
  void mask_blocks(const std::vector<uint64_t>& keys) {
    const uint32_t blocks = static_cast<uint32_t>(examples_.size());
    if (examples_.size() * keys.size() > 0xFFFFFFFFull)
      throw std::length_error("more than 4294967295 examples in one shard");
    DynamicMasker masker(rules_.masking);
    std::vector<int32_t> ids(rules_.max_seq_length), positions(rules_.masking.most), labels(rules_.masking.most);
    std::vector<uint8_t> starts(rules_.max_seq_length);
    examples_.room(blocks * (keys.size() - 1));
    for (size_t pass = 0; pass < keys.size(); ++pass)
      for (uint32_t number = 0; number < blocks; ++number) {
        Block block = examples_[number];
        block.first_mask = positions_.size();
        tokens_ += block.length + 1u;
        if (rules_.masks) {
          ids[0] = static_cast<int32_t>(rules_.cls);
          std::copy_n(&text_[block.start], block.length, ids.begin() + 1);
          if (starts_.size()) write_starts(block, starts.data());
          // The stream depends only on the pass and the block's number, so that masks do not depend on the order of
          // work.
          CounterStream stream(keys[pass], number);
          block.masks = static_cast<uint16_t>(masker.mask(ids.data(), starts_.size() ? starts.data() : nullptr,
                                                          block.length + 1u, rules_.masked_lm_prob, stream,
                                                          positions.data(), labels.data()));
          keep_masks(ids, positions, block.masks);
        }
        if (pass)
          examples_.push(block);
        else
          examples_[number] = block;
      }
  }

  // Writes the example's word starts. [CLS] and the id after it start words.
  void write_starts(const Block& block, uint8_t* starts) const {
    std::memcpy(starts + 1, &starts_[block.start], block.length);
    starts[0] = starts[1] = 1;
  }

  void keep_masks(const std::vector<int32_t>& ids, const std::vector<int32_t>& positions, uint32_t count) {
    uint16_t* places = positions_.room(count);
    Id* replacements = replacements_.room(count);
    for (uint32_t m = 0; m < count; ++m) {
      places[m] = static_cast<uint16_t>(positions[m]);
      replacements[m] = static_cast<Id>(ids[static_cast<size_t>(positions[m])]);
    }
    positions_.added(count);
    replacements_.added(count);
  }

  // Prefetches an example's text and masks. Shuffled examples are far apart in memory, so each would miss the cache.
  void prefetch_text(const Block& block) const {
    const char* text = reinterpret_cast<const char*>(&text_[block.start]);
    for (size_t at = 0; at < block.length * sizeof(Id); at += 64) __builtin_prefetch(text + at);
    __builtin_prefetch(positions_.data() + block.first_mask);
    __builtin_prefetch(replacements_.data() + block.first_mask);
  }

  void append(const Block& block, MlmColumns<Id>& out) const {
    Id* ids = out.ids.room(block.length + 1u);
    ids[0] = static_cast<Id>(rules_.cls);
    std::memcpy(ids + 1, &text_[block.start], block.length * sizeof(Id));
    uint16_t* positions = out.positions.room(block.masks);
    Id* labels = out.labels.room(block.masks);
    for (uint32_t m = 0; m < block.masks; ++m) {
      const uint16_t position = positions_[block.first_mask + m];
      positions[m] = position;
      labels[m] = ids[position];
      ids[position] = replacements_[block.first_mask + m];
    }
    if (tells_words_) {
      write_starts(block, out.word_starts.room(block.length + 1u));
      out.word_starts.added(block.length + 1u);
    }
    out.ids.added(block.length + 1u);
    out.positions.added(block.masks);
    out.labels.added(block.masks);
    out.ends.push(static_cast<uint32_t>(out.ids.size()));
    out.mask_ends.push(static_cast<uint32_t>(out.positions.size()));
  }

  MlmRules rules_;
  uint32_t longest_;  // largest number of ids after [CLS]
  bool tells_words_;
  uint64_t open_ = 0;  // index in text_ of the open block's first id
  Column<Id> text_;
  Column<uint8_t> starts_;  // word starts of text_, if the documents have them
  Column<Block> examples_;
  Column<uint16_t> positions_;
  Column<Id> replacements_;
  Column<uint32_t> order_;
  uint64_t tokens_ = 0;
};

}  // namespace bertdata
