// Cuts text into blocks of whole sentences that never cross a document's end. Twin of examples/span/blocks.py.
#pragma once

#include <algorithm>
#include <cstdint>

#include "examples/documents.h"

namespace bertdata {

// Cuts documents into blocks of at most `longest` ids, each of as many whole sentences as fit. A longer sentence is
// cut into pieces, or dropped if as_original. Calls found(start, end) with the range of ids of each block.
template <class Id>
class SpanBlockCutter {
 public:
  SpanBlockCutter(uint32_t longest, bool as_original) : longest_(longest), as_original_(as_original) {}

  template <class Found>
  void cut(const DocumentView<Id>& documents, Found found) const {
    for (uint32_t document = 0; document < documents.documents; ++document)
      cut_document(documents, documents.first_sentence(document), documents.document_ends[document], found);
  }

 private:
  // Cuts the sentences from `sentence` up to `stop`. Sentences without ids are skipped.
  template <class Found>
  void cut_document(const DocumentView<Id>& documents, uint32_t sentence, uint32_t stop, Found& found) const {
    uint32_t first = 0, last = 0;  // range of ids of the open block, empty if there is none
    bool is_lost = false;          // the last sentence that has ids is dropped
    for (; sentence < stop; ++sentence) {
      const uint32_t start = documents.first_id(sentence), end = documents.sentence_ends[sentence];
      if (start == end) continue;
      // SpanBERT's program drops a sentence that is longer than a block, and with it the open block if no further
      // sentence follows.
      is_lost = as_original_ && end - start > longest_;
      if (is_lost) continue;
      // The sentence no longer fits. A single sentence that is too long stays open here and is cut by close().
      if (first < last && end - first > longest_) close(first, last, found);
      if (first == last) first = start;
      last = end;
    }
    if (!is_lost) close(first, last, found);
  }

  // Reports the open block, in pieces of `longest` ids if it is too long, and marks it as closed (first == last).
  template <class Found>
  void close(uint32_t& first, uint32_t& last, Found& found) const {
    for (uint32_t start = first; start < last;) {
      const uint32_t end = last - start > longest_ ? start + longest_ : last;
      found(start, end);
      start = end;
    }
    first = last;
  }

  uint32_t longest_;
  bool as_original_;
};

}  // namespace bertdata
