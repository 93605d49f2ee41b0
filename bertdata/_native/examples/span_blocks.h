// Text to blocks of whole sentences of one document. Twin of examples/span/blocks.py.
#pragma once

#include <algorithm>
#include <cstdint>

#include "examples/documents.h"

namespace bertdata {

// Calls found(start, end) for each block, as many whole sentences of one document as fit into `longest` ids.
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
  // Sentences without ids count for nothing.
  template <class Found>
  void cut_document(const DocumentView<Id>& documents, uint32_t sentence, uint32_t stop, Found& found) const {
    uint32_t first = 0, last = 0;  // the open block; empty where there is none
    bool is_lost = false;          // whether the last sentence with ids is dropped
    for (; sentence < stop; ++sentence) {
      const uint32_t start = documents.first_id(sentence), end = documents.sentence_ends[sentence];
      if (start == end) continue;
      is_lost = as_original_ && end - start > longest_;
      if (is_lost) continue;
      if (first < last && end - first > longest_) close(first, last, found);
      if (first == last) first = start;
      last = end;
    }
    if (!is_lost) close(first, last, found);
  }

  // Hands over the block, in pieces where it is too long, and leaves none open.
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
