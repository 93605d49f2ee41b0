// Sentences to ELECTRA's examples. Twin of examples/electra/reference.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "column.h"
#include "examples/documents.h"
#include "examples/mt19937.h"

namespace bertdata {

// The random stream of a run, and the length of its next example: both go on from one input to the next.
class ElectraStream {
 public:
  // inputs: how many there are, which the program shuffles first.
  ElectraStream(const std::vector<uint32_t>& seed, uint32_t longest, uint32_t inputs)
      : random_(seed), longest_(longest), target_(longest) {
    random_.skip_shuffle(inputs);
  }

  uint32_t longest() const { return longest_; }
  uint32_t target() const { return target_; }
  // The wanted length of the first segment. One of 100000 ids leaves nothing for a second.
  uint32_t draw_first() { return random_.random() < 0.1 ? 100000 : (target_ - 3) / 2; }
  bool draw_joins() { return random_.random() < 0.5; }
  void draw_target() { target_ = random_.random() < 0.05 ? random_.randint(kShortest, longest_) : longest_; }

  static constexpr uint32_t kShortest = 5;

 private:
  RandomStream random_;
  uint32_t longest_, target_;
};

// Columns of finished examples, without padding (examples/electra/batch.py).
template <class Id>
struct ElectraColumns {
  Column<Id> ids;
  Column<uint32_t> ends, first_lengths;
};

// Examples as finished ids: the sentences of a segment need not be neighbours in the text.
template <class Id>
class ElectraExamples {
 public:
  ElectraExamples(const DocumentView<Id>& documents, uint32_t cls, uint32_t sep, ElectraStream& stream)
      : cls_(static_cast<Id>(cls)), sep_(static_cast<Id>(sep)), longest_(stream.longest()) {
    for (uint32_t document = 0; document < documents.documents; ++document)
      cut_document(documents, documents.first_sentence(document), documents.document_ends[document], stream);
    ids_.fit();
    examples_.fit();
  }

  size_t size() const { return examples_.size(); }
  uint64_t tokens() const { return ids_.size(); }
  uint64_t masked() const { return 0; }
  uint64_t lost() const { return lost_; }

  // Examples start, start + step, ... below stop, in the order of the text.
  ElectraColumns<Id> batch(size_t start, size_t stop, size_t step) const {
    ElectraColumns<Id> out{};
    stop = std::min(stop, size());
    step = std::min(step, std::max<size_t>(1, stop));
    for (size_t i = start; i < stop; i += step) {
      const Made& example = examples_[i];
      const size_t length = (i + 1 < size() ? examples_[i + 1].start : ids_.size()) - example.start;
      std::memcpy(out.ids.room(length), &ids_[example.start], length * sizeof(Id));
      out.ids.added(length);
      out.ends.push(static_cast<uint32_t>(out.ids.size()));
      out.first_lengths.push(example.first_length);
    }
    return out;
  }

 private:
  struct Made {
    uint64_t start;  // in ids_
    uint32_t first_length;
  };

  // The document's end ends an example too.
  void cut_document(const DocumentView<Id>& documents, uint32_t start, uint32_t stop, ElectraStream& stream) {
    for (uint32_t sentence = start; sentence < stop; ++sentence) {
      if (documents.sentence_ends[sentence] - documents.first_id(start) < stream.target()) continue;
      add(documents, start, sentence + 1, stream);
      start = sentence + 1;
    }
    if (start < stop && documents.sentence_ends[stop - 1] > documents.first_id(start))
      add(documents, start, stop, stream);
  }

  // An example of the sentences from start to stop. Sizes count the ids that are cut off too.
  void add(const DocumentView<Id>& documents, uint32_t start, uint32_t stop, ElectraStream& stream) {
    const uint32_t wanted = stream.draw_first();
    uint64_t first = 0, second = 0;
    Id* ids = ids_.room(longest_);
    uint32_t filled = 1;
    second_.clear();
    for (uint32_t sentence = start; sentence < stop; ++sentence) {
      const Id* from = documents.ids + documents.first_id(sentence);
      const uint32_t length = documents.sentence_ends[sentence] - documents.first_id(sentence);
      if (!first || first + length < wanted || (!second && first < wanted && stream.draw_joins())) {
        const uint32_t copied = std::min(length, longest_ - 1 - filled);
        std::memcpy(ids + filled, from, copied * sizeof(Id));
        filled += copied;
        first += length;
      } else {
        const size_t room = longest_ - second_.size();
        second_.insert(second_.end(), from, from + std::min<size_t>(length, room));
        second += length;
      }
    }
    uint64_t held = filled - 1;  // of the sentences' ids, each of which is offered to this example alone
    ids[0] = cls_;
    ids[filled++] = sep_;
    examples_.push(Made{ids_.size(), filled});
    const uint32_t room = longest_ > filled + 1 ? longest_ - filled - 1 : 0;
    if (const uint32_t copied = static_cast<uint32_t>(std::min<size_t>(second_.size(), room))) {
      std::memcpy(ids + filled, second_.data(), copied * sizeof(Id));
      filled += copied;
      held += copied;
      ids[filled++] = sep_;
    }
    ids_.added(filled);
    lost_ += first + second - held;
    stream.draw_target();
  }

  const Id cls_, sep_;
  const uint32_t longest_;
  Column<Id> ids_;
  Column<Made> examples_;
  uint64_t lost_ = 0;
  std::vector<Id> second_;  // of the example under way, as far as it can be needed
};

}  // namespace bertdata
