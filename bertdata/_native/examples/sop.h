// ALBERT's objective (sentence order): BERT's pairs and masks with other rules, and word starts. Twin of
// examples/sop/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "examples/bert.h"

namespace bertdata {

// Finished examples as columns, without padding. examples/sop/batch.py describes the columns.
template <class Id>
struct SopColumns {
  BertColumns<Id> pairs;
  Column<uint8_t> word_starts;
};

// All examples of one shard.
template <class Id>
class SopExamples : public BertExamples<Id> {
 public:
  // Makes all examples. Batches always include word starts, so the last argument is not used.
  SopExamples(const DocumentView<Id>& documents, const BertRules& rules, const std::vector<uint32_t>& seed, bool)
      : BertExamples<Id>(documents, rules, seed, false), starts_by_id_(rules.continues_word.size()) {
    for (size_t id = 0; id < starts_by_id_.size(); ++id)
      starts_by_id_[id] = id == rules.cls || id == rules.sep || !(documents.word_starts || rules.continues_word[id]);
  }

  // Returns examples start, start + step, ... below stop, in their final order.
  SopColumns<Id> batch(size_t start, size_t stop, size_t step) const {
    SopColumns<Id> out{BertExamples<Id>::batch(start, stop, step), {}};
    out.word_starts.room(out.pairs.ids.size());
    this->each(start, stop, step, [&](const auto& span) { append_starts(span, out.word_starts); });
    return out;
  }

 private:
  template <class Span>
  void append_starts(const Span& span, Column<uint8_t>& out) const {
    out.push(1);
    for (uint32_t place = span.a; place < span.a + span.a_length; ++place) out.push(starts_word(place));
    out.push(1);
    for (uint32_t place = span.b; place < span.b + span.b_length; ++place) out.push(starts_word(place));
    out.push(1);
  }

  uint8_t starts_word(uint32_t place) const {
    const uint8_t by_id = starts_by_id_[this->documents_.ids[place]];
    return this->documents_.word_starts ? by_id | this->documents_.word_starts[place] : by_id;
  }

  std::vector<uint8_t> starts_by_id_;
};

}  // namespace bertdata
