// Draws masks when examples are loaded, so that every epoch has different masks. Twin of examples/masking/reference.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "examples/counter_stream.h"
#include "examples/ngrams.h"

namespace bertdata {

// Settings of masks that are drawn at load.
struct MaskingRules {
  // most: largest number of masks in an example. mask: id of [MASK].
  uint32_t most, mask;
  // A 32-bit draw below mask_limit writes [MASK], a draw from there to random_limit a random id. Else the id stays.
  uint64_t mask_limit, random_limit;
  // Ids that random replacements are drawn from.
  std::vector<uint32_t> replacements;
  std::vector<uint8_t> is_special, continues_word;  // by id
  // draws_counts: decide for each word separately whether it is masked, so that the number of masks varies.
  bool whole_words, draws_counts;
  std::vector<double> ngram_limits{};  // distribution of n-gram lengths, see ngrams.h; empty: single words
};

// Masks one example at a time. The buffers are reused for the next example.
class DynamicMasker {
 public:
  explicit DynamicMasker(const MaskingRules& rules) : rules_(rules) {}

  // Masks at most 65535 unmasked ids in place, all in the vocabulary, and returns the number of masks.
  // starts: 1 for each id that starts a word. If null, the vocabulary tells by id which tokens continue a word.
  // rate: share of the ids to mask, above 0 and at most 1.
  // positions, labels: output, room for rules.most entries each.
  uint32_t mask(int32_t* ids, const uint8_t* starts, uint32_t length, double rate, CounterStream& stream,
                int32_t* positions, int32_t* labels) {
    collect_candidates(ids, starts, length);
    is_masked_.assign((length + 63) / 64, 0);
    if (!rules_.ngram_limits.empty())
      take_ngrams(masks_wanted(length, rate), stream);
    else if (rules_.draws_counts)
      draw_each(rate, stream);
    else
      take(masks_wanted(length, rate), stream);
    return replace(ids, stream, positions, labels);
  }

 private:
  // Collects the positions that may be masked, grouped into words: word w has candidates_[starts_[w]] up to
  // candidates_[starts_[w + 1]].
  // Example with whole_words: [CLS] un ##able to [SEP] -> candidates_ 1 2 3, starts_ 0 2 3, words_ 0 1.
  void collect_candidates(const int32_t* ids, const uint8_t* starts, uint32_t length) {
    candidates_.resize(length);
    starts_.resize(length + 1);
    uint32_t count = 0, words = 0;
    bool follows = false;
    for (uint32_t position = 0; position < length; ++position) {
      const uint32_t id = static_cast<uint32_t>(ids[position]);
      if (rules_.is_special[id]) {
        follows = false;
        continue;
      }
      // A word never continues across a special id, even if the id after it is marked as a continuation.
      const bool joins = rules_.whole_words && follows && (starts ? !starts[position] : rules_.continues_word[id]);
      if (!joins) starts_[words++] = count;
      candidates_[count++] = static_cast<uint16_t>(position);
      follows = true;
    }
    starts_[words] = count;
    words_.resize(words);
    std::iota(words_.begin(), words_.end(), 0u);
  }

  uint32_t masks_wanted(uint32_t length, double rate) const {
    const double share = std::max(std::nearbyint(length * rate), 1.0);  // rounds half to even, as Python's round
    return share < rules_.most ? static_cast<uint32_t>(share) : rules_.most;
  }

  uint32_t size(uint32_t word) const { return starts_[word + 1] - starts_[word]; }

  void mark(uint32_t word) {
    for (uint32_t c = starts_[word]; c < starts_[word + 1]; ++c)
      is_masked_[candidates_[c] >> 6] |= uint64_t{1} << (candidates_[c] & 63);
  }

  // Masks words in random order until `wanted` ids are masked. A word that would exceed `wanted` is skipped, and
  // shorter words after it may still fit.
  void take(uint32_t wanted, CounterStream& stream) {
    const uint32_t count = static_cast<uint32_t>(words_.size());
    for (uint32_t place = 0, masked = 0; place < count && masked < wanted; ++place) {
      // Fisher-Yates from the front, a step at a time, so that only the words looked at cost a draw.
      std::swap(words_[place], words_[place + stream.below(count - place)]);
      const uint32_t word = words_[place];
      if (masked + size(word) > wanted) continue;
      mark(word);
      masked += size(word);
    }
  }

  // Masks n-grams of words in random order until `wanted` ids are masked. An n-gram that would exceed `wanted` loses
  // words at its end. An n-gram with a word that is masked already is skipped.
  void take_ngrams(uint32_t wanted, CounterStream& stream) {
    const uint32_t count = static_cast<uint32_t>(words_.size());
    for (uint32_t place = 0, masked = 0; place < count && masked < wanted; ++place) {
      std::swap(words_[place], words_[place + stream.below(count - place)]);
      const uint32_t first = words_[place];
      uint32_t end = std::min(first + ngram_length(rules_.ngram_limits, stream.word() / 4294967296.0), count);
      while (end > first && masked + starts_[end] - starts_[first] > wanted) --end;
      bool is_free = true;
      for (uint32_t word = first; word < end; ++word) is_free &= !is_marked(word);
      for (uint32_t word = first; word < end && is_free; ++word) {
        mark(word);
        masked += size(word);
      }
    }
  }

  // Returns whether a word is masked. All its positions are masked or none, so the first is enough.
  bool is_marked(uint32_t word) const {
    const uint16_t position = candidates_[starts_[word]];
    return is_masked_[position >> 6] >> (position & 63) & 1;
  }

  // Masks each word with probability `rate`. If that gives more than rules_.most ids, masks a random subset that fits.
  void draw_each(double rate, CounterStream& stream) {
    const uint64_t limit = static_cast<uint64_t>(std::nearbyint(rate * 4294967296.0));
    uint32_t drawn = 0;
    uint64_t masked = 0;
    for (uint32_t word = 0; word < words_.size(); ++word) {
      words_[drawn] = word;
      const bool is_drawn = stream.word() < limit;
      drawn += is_drawn;
      masked += is_drawn ? size(word) : 0;
    }
    words_.resize(drawn);
    if (masked > rules_.most) return take(rules_.most, stream);
    for (const uint32_t word : words_) mark(word);
  }

  // Replaces the ids at the marked positions, in ascending order, and returns their number.
  uint32_t replace(int32_t* ids, CounterStream& stream, int32_t* positions, int32_t* labels) const {
    uint32_t count = 0;
    for (size_t word = 0; word < is_masked_.size(); ++word)
      for (uint64_t bits = is_masked_[word]; bits; bits &= bits - 1, ++count) {
        // Clearing the lowest set bit (bits & bits - 1) visits the marked positions of 64 at a time.
        const uint32_t position = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits));
        positions[count] = static_cast<int32_t>(position);
        labels[count] = ids[position];
        ids[position] = static_cast<int32_t>(replacement(static_cast<uint32_t>(ids[position]), stream));
      }
    return count;
  }

  uint32_t replacement(uint32_t original, CounterStream& stream) const {
    const uint32_t draw = stream.word();
    if (draw < rules_.mask_limit) return rules_.mask;
    if (draw >= rules_.random_limit) return original;
    return rules_.replacements[stream.below(static_cast<uint32_t>(rules_.replacements.size()))];
  }

  const MaskingRules& rules_;
  std::vector<uint16_t> candidates_;
  std::vector<uint32_t> starts_, words_;
  std::vector<uint64_t> is_masked_;
};

}  // namespace bertdata
