// Turns sentences into ELECTRA's examples. Twin of examples/electra/reference.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "column.h"
#include "examples/documents.h"
#include "examples/mt19937.h"

namespace bertdata {

// The random stream of a run and the target length of the next example. Both carry over from one input to the next.
class ElectraStream {
 public:
  // inputs: number of inputs. ELECTRA's program shuffles their order first, so these draws are skipped here.
  ElectraStream(const std::vector<uint32_t>& seed, uint32_t longest, uint32_t inputs)
      : random_(seed), longest_(longest), target_(longest) {
    random_.skip_shuffle(inputs);
  }

  uint32_t longest() const { return longest_; }
  uint32_t target() const { return target_; }
  // Draws the target length of the first segment. In a tenth of the examples it is 100000, so that nothing is left for
  // a second segment.
  uint32_t draw_first() { return random_.random() < 0.1 ? 100000 : (target_ - 3) / 2; }
  // Draws whether a sentence that crosses the first segment's target still joins the first segment.
  bool draw_joins() { return random_.random() < 0.5; }
  // Draws the target length of the next example: shorter in a twentieth of the cases.
  void draw_target() { target_ = random_.random() < 0.05 ? random_.randint(kShortest, longest_) : longest_; }

  static constexpr uint32_t kShortest = 5;

 private:
  RandomStream random_;
  uint32_t longest_, target_;
};

// Finished examples as columns, without padding. examples/electra/batch.py describes the columns.
template <class Id>
struct ElectraColumns {
  Column<Id> ids;
  Column<uint32_t> ends, first_lengths;
};

// All examples of one shard, stored as finished ids. Ranges of the text are not enough, because a segment's sentences
// need not be neighbours in the text.
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

  // Returns examples start, start + step, ... below stop, in the order of the text.
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
    uint64_t start;  // index in ids_
    // Ids of [CLS], the first segment and its [SEP].
    uint32_t first_length;
  };

  // Makes the examples of a document, which is the sentences from `start` up to `stop`. An example ends when it reaches
  // the target length, and at the document's end.
  void cut_document(const DocumentView<Id>& documents, uint32_t start, uint32_t stop, ElectraStream& stream) {
    for (uint32_t sentence = start; sentence < stop; ++sentence) {
      if (documents.sentence_ends[sentence] - documents.first_id(start) < stream.target()) continue;
      add(documents, start, sentence + 1, stream);
      start = sentence + 1;
    }
    if (start < stop && documents.sentence_ends[stop - 1] > documents.first_id(start))
      add(documents, start, stop, stream);
  }

  // Makes an example of sentences start up to stop, and draws the next target length.
  // `first` and `second` count all ids of the segments, also ids that are cut off, because the draws depend on them.
  void add(const DocumentView<Id>& documents, uint32_t start, uint32_t stop, ElectraStream& stream) {
    const uint32_t wanted = stream.draw_first();
    uint64_t first = 0, second = 0;
    Id* ids = ids_.room(longest_);
    uint32_t filled = 1;
    second_.clear();
    for (uint32_t sentence = start; sentence < stop; ++sentence) {
      const Id* from = documents.ids + documents.first_id(sentence);
      const uint32_t length = documents.sentence_ends[sentence] - documents.first_id(sentence);
      // The first segment takes sentences that fit below its target. A sentence that crosses the target goes to either
      // segment with equal probability while the second is empty, else to the second. A later sentence that is short
      // enough still goes to the first, as in the original.
      if (!first || first + length < wanted || (!second && first < wanted && stream.draw_joins())) {
        // Ids beyond the longest example are cut at once: [CLS] is in front, and one place is kept for [SEP].
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
    uint64_t held = filled - 1;  // ids that were not cut off; no sentence is in two examples
    ids[0] = cls_;
    ids[filled++] = sep_;
    // The second segment needs room for its [SEP] too, and is left out with it if there is none.
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
  std::vector<Id> second_;  // second segment of the current example, cut to the longest example
};

}  // namespace bertdata
