// Turns documents of sentences into pairs of segments. Twin of examples/pairs.py.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/documents.h"
#include "examples/mt19937.h"

namespace bertdata {

// Settings of the pairs.
struct PairRules {
  // Most ids of both segments together.
  uint32_t max_tokens;
  double short_seq_prob;
  // Label if ten draws of a random document all gave the pair's document.
  uint8_t own_label;
  // ALBERT: B is never random. Half of the pairs have their segments swapped instead.
  bool swaps_halves;
};

// Two segments as ranges of the documents' ids: a and b are indices of the first id.
struct Pair {
  uint32_t a, a_length, b, b_length;
  uint8_t label;
};

// Makes the pairs of a document set, one pass after another.
template <class Id>
class Pairing {
 public:
  // Shuffles the documents. All further draws come from `random` too.
  Pairing(const DocumentView<Id>& documents, const PairRules& rules, RandomStream& random)
      : documents_(documents), rules_(rules), random_(random), order_(documents.documents) {
    for (uint32_t d = 0; d < documents_.documents; ++d) order_[d] = d;
    random_.shuffle(order_.data(), documents_.documents);
  }

  // Calls take(pair) for each pair of a pass over all documents. take() may draw from the stream, and does so before
  // the next pair is drawn.
  template <class Take>
  void pass(Take&& take) {
    for (uint32_t place = 0; place < documents_.documents; ++place) pair_document(place, take);
  }

 private:
  // Makes the pairs of one document.
  // place: the document's index in the shuffled order.
  template <class Take>
  void pair_document(uint32_t place, Take& take) {
    const uint32_t document = order_[place];
    const uint32_t begin = documents_.first_sentence(document), end = documents_.document_ends[document];
    uint32_t target = rules_.max_tokens;
    if (random_.random() < rules_.short_seq_prob) target = random_.randint(2, rules_.max_tokens);
    uint32_t first = begin;  // first sentence of the open chunk
    for (uint32_t sentence = begin; sentence < end; ++sentence) {
      const uint64_t length = documents_.sentence_ends[sentence] - documents_.first_id(first);
      // Collect sentences in a chunk until they reach the target length or the document ends.
      if (length < target && sentence + 1 < end) continue;
      const uint32_t sentences = sentence - first + 1;
      // A gets the first sentences, at least one, and leaves at least one for B if there are several.
      const uint32_t a_sentences = sentences >= 2 ? random_.randint(1, sentences - 1) : 1;
      const uint32_t a = documents_.first_id(first), b = documents_.sentence_ends[first + a_sentences - 1];
      Pair pair{a, b - a, b, documents_.sentence_ends[sentence] - b, 0};
      // A chunk of one sentence has nothing left for B, so B is always random, and no draw decides.
      if (sentences == 1 || (!rules_.swaps_halves && random_.random() < 0.5)) {
        random_next(place, target, pair);
        // B did not use the chunk's other sentences, so go back: chunk of sentences 4 to 7, A = 4 and 5 -> continue
        // with 6
        sentence -= sentences - a_sentences;
      } else if (rules_.swaps_halves && random_.random() < 0.5) {
        pair = {pair.b, pair.b_length, pair.a, pair.a_length, 1};
      }
      first = sentence + 1;
      truncate(pair);
      take(pair);
    }
  }

  // Makes B of whole sentences from a random place of another document, until the pair reaches `target` ids. After ten
  // draws of the pair's own document, B comes from that document.
  void random_next(uint32_t place, uint32_t target, Pair& pair) {
    uint32_t other = place;
    for (int tries = 0; tries < 10 && other == place; ++tries) other = random_.below(documents_.documents);
    const uint32_t document = order_[other];
    const uint32_t begin = documents_.first_sentence(document), end = documents_.document_ends[document];
    uint32_t sentence = begin + random_.below(end - begin);
    pair.b = documents_.first_id(sentence);
    // At least one sentence, even if A alone has reached the target.
    do pair.b_length = documents_.sentence_ends[sentence++] - pair.b;
    while (sentence < end && static_cast<int64_t>(pair.b_length) < static_cast<int64_t>(target) - pair.a_length);
    pair.label = other == place ? rules_.own_label : 1;
  }

  // Removes ids until the pair has at most max_tokens: from the longer segment (B if equal), with a draw for each id
  // that decides between the front and the back.
  void truncate(Pair& pair) {
    while (uint64_t{pair.a_length} + pair.b_length > rules_.max_tokens) {
      const uint32_t from_front = random_.random() < 0.5;
      if (pair.a_length > pair.b_length)
        pair.a += from_front, --pair.a_length;
      else
        pair.b += from_front, --pair.b_length;
    }
  }

  DocumentView<Id> documents_;
  PairRules rules_;
  RandomStream& random_;
  std::vector<uint32_t> order_;
};

}  // namespace bertdata
