// BERT's objective of 2018: documents to masked sentence pairs, draw by draw. And what ALBERT's shares with it.
// Twin of examples/bert/, of examples/masking/reference.py and of examples/sop/ngrams.py.
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

struct BertRules {
  uint32_t max_seq_length, max_predictions, dupe_factor;
  double masked_lm_prob, mask_share, kept_of_unchanged, short_seq_prob;
  bool whole_word_mask, masks, fills_predictions, skips_special_ids;  // the last: the text holds cls or sep
  uint8_t own_next_label;
  uint32_t cls, sep, mask;
  std::vector<uint32_t> replacements;    // what a random replacement draws from
  std::vector<uint8_t> continues_word;  // by id: the token starts with ##
  bool swaps_halves = false;
  NgramRules ngrams{};

  PairRules pairs() const { return {max_seq_length - 3, short_seq_prob, own_next_label, swaps_halves}; }
};

// Columns of finished examples, without padding (examples/bert/batch.py).
template <class Id>
struct BertColumns {
  Column<Id> ids, labels;
  Column<uint32_t> ends, first_lengths, mask_ends;
  Column<uint16_t> positions;
  Column<uint8_t> next_labels;
  bool tells_words;
  Column<uint8_t> word_starts;  // where it tells them, for each id
};

// Examples as spans of the documents' ids and lists of masks: some 24 bytes and 4 for each mask.
template <class Id>
class BertExamples {
 public:
  // tells_words: batches have word starts, which the documents then tell.
  BertExamples(const DocumentView<Id>& documents, const BertRules& rules, const std::vector<uint32_t>& seed,
               bool tells_words)
      : documents_(documents), rules_(rules), tells_words_(tells_words), random_(seed), lengths_(rules.ngrams) {
    make();
  }

  size_t size() const { return spans_.size(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t masked() const { return positions_.size(); }
  uint64_t lost() const { return lost_; }

  // Examples start, start + step, ... below stop, in final order.
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
  struct Span {
    uint64_t first_mask;
    uint32_t a, b;  // first ids in the documents
    uint16_t a_length, b_length, masks;
    uint8_t next_label;
  };

  // Calls use(span) for examples start, start + step, ... below stop, in final order.
  template <class Use>
  void each(size_t start, size_t stop, size_t step, Use use) const {
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    for (size_t i = start; i < stop; i += step) {
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

  uint32_t masks_wanted(uint32_t length) const {
    // Half to even, as Python. Any finite probability, as the scripts accept it.
    const double share = std::clamp(std::nearbyint(length * rules_.masked_lm_prob), 1.0, 65535.0);
    uint32_t wanted = std::min(rules_.max_predictions, static_cast<uint32_t>(share));
    if (rules_.fills_predictions && length + rules_.max_predictions > rules_.max_seq_length)
      wanted = std::max(wanted, length + rules_.max_predictions - rules_.max_seq_length);
    return wanted;
  }

  // Writes the positions that may be masked, ascending, to candidates_ and returns their number.
  uint32_t collect_candidates(const Span& span) {
    const uint32_t a_end = 1u + span.a_length, length = a_end + span.b_length + 2u;
    const uint32_t count = length - 3u;
    std::memcpy(candidates_.data(), &all_positions_[1], span.a_length * sizeof(uint16_t));
    std::memcpy(&candidates_[span.a_length], &all_positions_[a_end + 1], span.b_length * sizeof(uint16_t));
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

  // Where the id at a position that is not special stands in the documents.
  static uint32_t place_of(const Span& span, uint32_t position) {
    return position <= span.a_length ? span.a + position - 1 : span.b + position - span.a_length - 2;
  }

  void mask_pieces(const Span& span) {
    const uint32_t count = collect_candidates(span);
    const uint32_t wanted = std::min(count, masks_wanted(span.a_length + span.b_length + 3u));
    random_.shuffle_first(candidates_.data(), count, wanted);
    for (uint32_t i = 0; i < wanted; ++i) mask_position(span, candidates_[i]);
  }

  // Collects the words of the candidates: word w is those from word_starts_[w] up to word_starts_[w + 1]. Returns how
  // many there are, and words_ in a random order. By the ids a word goes on also behind a special one.
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

  // A word that would exceed the wanted masks is left.
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

  void mask_ngrams(const Span& span) {
    if (rules_.masked_lm_prob == 0) return;
    const uint32_t wanted = masks_wanted(span.a_length + span.b_length + 3u), words = shuffle_words(span);
    choose_ngrams(wanted);
    for (const uint16_t position : chosen_) mask_position(span, position);
    if (!rules_.ngrams.permutes) return random_.skip_shuffle(words);
    random_.shuffle(words_.data(), words);
    choose_ngrams(wanted);
    std::sort(chosen_.begin(), chosen_.end());
    std::vector<uint16_t> sources = chosen_;
    random_.shuffle(sources.data(), static_cast<uint32_t>(sources.size()));
    for (size_t i = 0; i < sources.size(); ++i) replaced_[chosen_[i]] = id_at(span, sources[i]);
  }

  // Chooses and marks positions of n-grams that begin with words_, in this order, at most `wanted` in all. An n-gram
  // with too many loses words at its end; one of which a position is marked already is left out.
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

  // Moves the marked positions, ascending, to the example's list. Returns how many. Without masks they are
  // drawn all the same, so that the pairs are those of a run with masks, and left out here.
  size_t collect_masks(const Span& span) {
    const size_t before = positions_.size();
    const size_t words = (span.a_length + span.b_length + 3u + 63u) / 64;
    for (size_t word = 0; word < words; ++word) {
      for (uint64_t bits = rules_.masks ? is_masked_[word] : 0; bits; bits &= bits - 1) {
        const uint32_t position = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits));
        positions_.push(static_cast<uint16_t>(position));
        replacements_.push(replaced_[position]);
      }
      is_masked_[word] = 0;
    }
    return positions_.size() - before;
  }

  // Asks for memory ahead of its use: shuffled examples lie far apart.
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

  // The word starts of an example: a special id starts a word, as does the id behind it.
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
  // Scratch of one example.
  std::vector<uint16_t> candidates_, all_positions_, words_, chosen_;
  std::vector<uint32_t> word_starts_;
  std::vector<Id> replaced_;
  std::vector<uint64_t> is_masked_;
};

}  // namespace bertdata
