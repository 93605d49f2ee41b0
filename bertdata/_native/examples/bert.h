// BERT's original objective (2018): turns documents into masked sentence pairs. ALBERT's objective (sop.h) builds on
// it.
// Twin of examples/bert/, examples/masking/reference.py and examples/sop/ngrams.py. The order of the random draws is
// the specification.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "column.h"
#include "examples/documents.h"
#include "examples/held_ids.h"
#include "examples/mt19937.h"
#include "examples/ngrams.h"
#include "examples/pairs.h"

namespace bertdata {

// Settings of the pairs and masks.
// max_predictions: most masks in an example. dupe_factor: number of passes over the documents.
// mask_share: share of the chosen ids that become [MASK]. kept_of_unchanged: of the others, the share that stays as it
// is. The rest become random ids.
// masks: false keeps the examples unmasked, although all masks are drawn.
struct BertRules {
  uint32_t max_seq_length, max_predictions, dupe_factor;
  double masked_lm_prob, mask_share, kept_of_unchanged, short_seq_prob;
  // skips_special_ids: the text itself contains cls or sep ids, which must not be masked.
  bool whole_word_mask, masks, fills_predictions, skips_special_ids;
  // Next-sentence label if ten draws of a random document all gave the document that the pair starts with.
  uint8_t own_next_label;
  uint32_t cls, sep, mask;
  std::vector<uint32_t> replacements;    // ids that random replacements are drawn from
  std::vector<uint8_t> continues_word;  // by id: the token continues a word (starts with ##)
  // ALBERT: B is never random. Half of the pairs have their segments swapped instead.
  bool swaps_halves = false;
  NgramRules ngrams{};

  PairRules pairs() const { return {max_seq_length - 3, short_seq_prob, own_next_label, swaps_halves}; }
};

// Finished examples as columns, without padding. examples/bert/batch.py describes the columns.
template <class Id>
struct BertColumns {
  Column<Id> ids, labels;
  Column<uint32_t> ends, first_lengths, mask_ends;
  Column<uint16_t> positions;
  Column<uint8_t> next_labels;
  bool tells_words;
  Column<uint8_t> word_starts;  // one per id, filled only if tells_words
};

// All examples of one shard. An example holds its two ranges of the documents' ids and its masks: 24 bytes, and 4 to 6
// bytes for each mask. `documents` must outlive this object.
template <class Id>
class BertExamples {
 public:
  // Makes all examples.
  // seed: seed of the stream that everything is drawn from, as for RandomStream.
  // tells_words: batches include word starts. `documents` must have them.
  BertExamples(const DocumentView<Id>& documents, const BertRules& rules, const std::vector<uint32_t>& seed,
               bool tells_words)
      : documents_(documents), rules_(rules), tells_words_(tells_words), random_(seed), lengths_(rules.ngrams) {
    make();
  }

  size_t size() const { return spans_.size(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t masked() const { return positions_.size(); }
  uint64_t lost() const { return lost_; }

  // Returns examples start, start + step, ... below stop, in their final order.
  BertColumns<Id> batch(size_t start, size_t stop, size_t step) const {
    BertColumns<Id> out;
    out.tells_words = tells_words_;
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    const size_t count = start < stop ? (stop - start - 1) / step + 1 : 0;
    out.ids.room(count * rules_.max_seq_length);
    out.positions.room(count * rules_.max_predictions);
    out.labels.room(count * rules_.max_predictions);
    each(start, stop, step, [&](const Span& span) { append(span, out); });
    return out;
  }

 protected:
  // An example: where its segments are in the documents, and its entries in the lists of masks.
  struct Span {
    uint64_t first_mask;
    uint32_t a, b;  // index in the documents' ids of the first id of segments A and B
    uint16_t a_length, b_length, masks;
    uint8_t next_label;
  };

  // Calls use(span) for examples start, start + step, ... below stop, in their final order.
  template <class Use>
  void each(size_t start, size_t stop, size_t step, Use use) const {
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    for (size_t i = start; i < stop; i += step) {
      // The final order is random, so every example would miss the cache. Fetch the Span eight examples ahead, and the
      // text it refers to four examples ahead, when the Span itself has arrived.
      if (i + 8 * step < stop) prefetch(&spans_[order_[i + 8 * step]], sizeof(Span));
      if (i + 4 * step < stop) prefetch_text(spans_[order_[i + 4 * step]]);
      use(spans_[order_[i]]);
    }
  }

  DocumentView<Id> documents_;
  BertRules rules_;

 private:
  void make() {
    Pairing<Id> pairing(documents_, rules_.pairs(), random_);
    const size_t words = (rules_.max_seq_length + 63) / 64;
    is_masked_.assign(words, 0);
    candidates_.resize(rules_.max_seq_length);
    all_positions_.resize(rules_.max_seq_length);
    for (uint32_t p = 0; p < rules_.max_seq_length; ++p) all_positions_[p] = static_cast<uint16_t>(p);
    replaced_.resize(rules_.max_seq_length);
    HeldIds held(documents_.size());
    // One stream for everything: each pair draws its masks before the next pair is drawn. A single additional draw
    // would change all later examples.
    for (uint32_t pass = 0; pass < rules_.dupe_factor; ++pass)
      pairing.pass([&](const Pair& pair) {
        held.mark(pair.a, pair.a_length);
        held.mark(pair.b, pair.b_length);
        add_example(pair);
      });
    lost_ = held.lost();
    if (spans_.size() > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 examples in one shard");
    uint32_t* order = order_.room(spans_.size());
    for (uint32_t i = 0; i < spans_.size(); ++i) order[i] = i;
    order_.added(spans_.size());
    random_.shuffle(order_.data(), static_cast<uint32_t>(order_.size()));
    spans_.fit();
    positions_.fit();
    replacements_.fit();
  }

  void add_example(const Pair& pair) {
    Span span{positions_.size(), pair.a, pair.b, static_cast<uint16_t>(pair.a_length),
              static_cast<uint16_t>(pair.b_length), 0, pair.label};
    if (!rules_.ngrams.limits.empty())
      mask_ngrams(span);
    else if (rules_.whole_word_mask)
      mask_words(span);
    else
      mask_pieces(span);
    span.masks = static_cast<uint16_t>(collect_masks(span));
    tokens_ += span.a_length + span.b_length + 3u;
    spans_.push(span);
  }

  // Returns the number of ids to mask in an example of `length` ids, special ids included.
  uint32_t masks_wanted(uint32_t length) const {
    // Rounds half to even, as Python's round. The clamp accepts any finite probability, as the original scripts do.
    const double share = std::clamp(std::nearbyint(length * rules_.masked_lm_prob), 1.0, 65535.0);
    uint32_t wanted = std::min(rules_.max_predictions, static_cast<uint32_t>(share));
    // Graphcore's program: at most max_seq_length - max_predictions ids stay unmasked, so long examples get more
    // masks.
    // length 126 of 128, 20 predictions -> at least 18 masks
    if (rules_.fills_predictions && length + rules_.max_predictions > rules_.max_seq_length)
      wanted = std::max(wanted, length + rules_.max_predictions - rules_.max_seq_length);
    return wanted;
  }

  // Writes the positions that may be masked to candidates_, in ascending order, and returns their number.
  // Layout: [CLS] a1 a2 [SEP] b1 b2 b3 [SEP] -> positions 1 2 4 5 6
  uint32_t collect_candidates(const Span& span) {
    const uint32_t a_end = 1u + span.a_length, length = a_end + span.b_length + 2u;
    const uint32_t count = length - 3u;
    std::memcpy(candidates_.data(), &all_positions_[1], span.a_length * sizeof(uint16_t));
    std::memcpy(&candidates_[span.a_length], &all_positions_[a_end + 1], span.b_length * sizeof(uint16_t));
    // Only text with its own [CLS] or [SEP] ids needs the slow path.
    if (!rules_.skips_special_ids) return count;
    const auto is_special = [&](uint16_t p) {
      const Id id = id_at(span, p);
      return id == rules_.cls || id == rules_.sep;
    };
    const auto kept = std::remove_if(candidates_.begin(), candidates_.begin() + count, is_special);
    return static_cast<uint32_t>(kept - candidates_.begin());
  }

  Id id_at(const Span& span, uint32_t position) const {
    return documents_.ids[place_of(span, position)];
  }

  // Returns the index in the documents' ids of the id at a position of segment A or B.
  static uint32_t place_of(const Span& span, uint32_t position) {
    return position <= span.a_length ? span.a + position - 1 : span.b + position - span.a_length - 2;
  }

  // Masks single tokens. Only the first `wanted` candidates of the shuffle are needed, but all its draws are made.
  void mask_pieces(const Span& span) {
    const uint32_t count = collect_candidates(span);
    const uint32_t wanted = std::min(count, masks_wanted(span.a_length + span.b_length + 3u));
    random_.shuffle_first(candidates_.data(), count, wanted);
    for (uint32_t i = 0; i < wanted; ++i) mask_position(span, candidates_[i]);
  }

  // Groups the candidates into words and shuffles the words. Returns the number of words.
  // Word w is candidates_[word_starts_[w]] up to candidates_[word_starts_[w + 1]]. words_ holds the words' numbers in
  // random order.
  // Without word starts from the documents, a token with ## joins the previous candidate even across a special id, as
  // in the original program.
  // Candidates un ##able to -> word_starts_ 0 2 3, words_ a permutation of 0 1
  uint32_t shuffle_words(const Span& span) {
    const uint32_t count = collect_candidates(span);
    word_starts_.clear();
    const auto collect = [&](const auto& joins) {
      for (uint32_t i = 0; i < count; ++i)
        if (i == 0 || !joins(i)) word_starts_.push_back(i);
    };
    if (!rules_.whole_word_mask)
      collect([](uint32_t) { return false; });
    else if (!documents_.word_starts)
      collect([&](uint32_t i) { return rules_.continues_word[id_at(span, candidates_[i])]; });
    else
      collect([&](uint32_t i) {
        return candidates_[i] == candidates_[i - 1] + 1u && !documents_.word_starts[place_of(span, candidates_[i])];
      });
    const uint32_t words = static_cast<uint32_t>(word_starts_.size());
    word_starts_.push_back(count);
    words_.resize(words);
    for (uint32_t w = 0; w < words; ++w) words_[w] = static_cast<uint16_t>(w);
    random_.shuffle(words_.data(), words);
    return words;
  }

  // Masks whole words. A word that would exceed the wanted number of masks is skipped, and a shorter word may still
  // fit.
  void mask_words(const Span& span) {
    const uint32_t words = shuffle_words(span);
    const uint32_t wanted = masks_wanted(span.a_length + span.b_length + 3u);
    for (uint32_t i = 0, masked = 0; i < words && masked < wanted; ++i) {
      const uint32_t start = word_starts_[words_[i]], stop = word_starts_[words_[i] + 1u];
      if (masked + stop - start > wanted) continue;
      for (uint32_t c = start; c < stop; ++c) mask_position(span, candidates_[c]);
      masked += stop - start;
    }
  }

  // Masks n-grams of words (ALBERT). With permutation, other n-grams of about as many ids are chosen too, and the ids
  // at their positions are shuffled among each other.
  void mask_ngrams(const Span& span) {
    if (rules_.masked_lm_prob == 0) return;
    const uint32_t wanted = masks_wanted(span.a_length + span.b_length + 3u), words = shuffle_words(span);
    choose_ngrams(wanted);
    for (const uint16_t position : chosen_) mask_position(span, position);
    // The original program shuffles the words again even without permutation, so the draws are needed.
    if (!rules_.ngrams.permutes) return random_.skip_shuffle(words);
    random_.shuffle(words_.data(), words);
    choose_ngrams(wanted);
    // choose_ngrams has marked the positions, so that they become targets like the masks. Position chosen_[i] shows
    // the id of sources[i].
    std::sort(chosen_.begin(), chosen_.end());
    std::vector<uint16_t> sources = chosen_;
    random_.shuffle(sources.data(), static_cast<uint32_t>(sources.size()));
    for (size_t i = 0; i < sources.size(); ++i) replaced_[chosen_[i]] = id_at(span, sources[i]);
  }

  // Chooses n-grams that start at the words of words_, in this order, until `wanted` positions are chosen. Marks the
  // positions and collects them in chosen_.
  // An n-gram that would exceed `wanted` loses words at its end. An n-gram with a position that is already marked is
  // skipped.
  void choose_ngrams(uint32_t wanted) {
    chosen_.clear();
    const uint32_t words = static_cast<uint32_t>(words_.size());
    for (uint32_t w = 0; w < words && chosen_.size() < wanted; ++w) {
      const uint32_t start = word_starts_[words_[w]];
      uint32_t end = std::min(words_[w] + lengths_.draw(), words);
      while (end > words_[w] && chosen_.size() + word_starts_[end] - start > wanted) --end;
      bool is_free = true;
      for (uint32_t c = start; c < word_starts_[end]; ++c) is_free &= !is_marked(candidates_[c]);
      if (!is_free) continue;
      for (uint32_t c = start; c < word_starts_[end]; ++c) {
        mark(candidates_[c]);
        chosen_.push_back(candidates_[c]);
      }
    }
  }

  bool is_marked(uint16_t position) const { return is_masked_[position >> 6] >> (position & 63) & 1; }
  void mark(uint16_t position) { is_masked_[position >> 6] |= uint64_t{1} << (position & 63); }

  // Chooses the id to show at a masked position: [MASK], the original id, or a random id. The draws are one or two
  // doubles and, for a random id, an integer.
  void mask_position(const Span& span, uint16_t position) {
    uint32_t id;
    if (random_.random() < rules_.mask_share)
      id = rules_.mask;
    else if (random_.random() < rules_.kept_of_unchanged)
      id = id_at(span, position);
    else
      id = rules_.replacements[random_.below(static_cast<uint32_t>(rules_.replacements.size()))];
    replaced_[position] = static_cast<Id>(id);
    mark(position);
  }

  // Appends the marked positions, ascending, to the masks of all examples and clears the marks. Returns their number.
  // Without rules_.masks the list stays empty. The masks are drawn all the same, so that the pairs are the same as in
  // a run with masks.
  size_t collect_masks(const Span& span) {
    const size_t before = positions_.size();
    const size_t words = (span.a_length + span.b_length + 3u + 63u) / 64;
    for (size_t word = 0; word < words; ++word) {
      // bits & bits - 1 clears the lowest set bit, so the loop visits the marked positions of 64 at a time.
      for (uint64_t bits = rules_.masks ? is_masked_[word] : 0; bits; bits &= bits - 1) {
        const uint32_t position = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits));
        positions_.push(static_cast<uint16_t>(position));
        replacements_.push(replaced_[position]);
      }
      is_masked_[word] = 0;
    }
    return positions_.size() - before;
  }

  // Prefetches `bytes` bytes, one cache line at a time.
  static void prefetch(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at);
  }
  void prefetch_text(const Span& span) const {
    prefetch(&documents_.ids[span.a], span.a_length * sizeof(Id));
    prefetch(&documents_.ids[span.b], span.b_length * sizeof(Id));
    prefetch(positions_.data() + span.first_mask, span.masks * sizeof(uint16_t));
    prefetch(replacements_.data() + span.first_mask, span.masks * sizeof(Id));
  }

  // Appends the word starts of an example. [CLS], [SEP] and the id after each of them start words.
  void append_starts(const Span& span, Column<uint8_t>& out) const {
    const uint32_t length = span.a_length + span.b_length + 3u;
    uint8_t* starts = out.room(length);
    std::memcpy(starts + 1, documents_.word_starts + span.a, span.a_length);
    std::memcpy(starts + 2u + span.a_length, documents_.word_starts + span.b, span.b_length);
    for (const uint32_t special : {0u, span.a_length + 1u}) starts[special] = starts[special + 1] = 1;
    starts[length - 1] = 1;
    out.added(length);
  }

  void append(const Span& span, BertColumns<Id>& out) const {
    if (tells_words_) append_starts(span, out.word_starts);
    const uint32_t length = span.a_length + span.b_length + 3u;
    Id* ids = out.ids.room(length);
    ids[0] = static_cast<Id>(rules_.cls);
    std::memcpy(ids + 1, documents_.ids + span.a, span.a_length * sizeof(Id));
    ids[1u + span.a_length] = static_cast<Id>(rules_.sep);
    std::memcpy(ids + 2u + span.a_length, documents_.ids + span.b, span.b_length * sizeof(Id));
    ids[length - 1] = static_cast<Id>(rules_.sep);
    uint16_t* positions = out.positions.room(span.masks);
    Id* labels = out.labels.room(span.masks);
    // The text is shared and stays unmasked: read the label, then write the replacement.
    for (uint32_t m = 0; m < span.masks; ++m) {
      const uint16_t position = positions_[span.first_mask + m];
      positions[m] = position;
      labels[m] = ids[position];
      ids[position] = replacements_[span.first_mask + m];
    }
    out.ids.added(length);
    out.positions.added(span.masks);
    out.labels.added(span.masks);
    out.ends.push(static_cast<uint32_t>(out.ids.size()));
    out.first_lengths.push(span.a_length + 2u);
    out.mask_ends.push(static_cast<uint32_t>(out.positions.size()));
    out.next_labels.push(span.next_label);
  }

  bool tells_words_;
  RandomStream random_;
  NgramLengths lengths_;
  Column<Span> spans_;
  Column<uint16_t> positions_;
  Column<Id> replacements_;
  Column<uint32_t> order_;
  uint64_t tokens_ = 0, lost_ = 0;
  // Buffers for a single example, reused for the next. replaced_: by position, the id shown there. is_masked_: a bit
  // for each position.
  std::vector<uint16_t> candidates_, all_positions_, words_, chosen_;
  std::vector<uint32_t> word_starts_;
  std::vector<Id> replaced_;
  std::vector<uint64_t> is_masked_;
};

}  // namespace bertdata
