// A document set as the kernels that make examples see it: records.Documents in Python.
#pragma once

#include <cstdint>

namespace bertdata {

// Views of a document set. End offsets as in records.Documents.
template <class Id>
struct DocumentView {
  const Id* ids;
  const uint32_t* sentence_ends;
  const uint32_t* document_ends;
  uint32_t documents;
  const uint8_t* word_starts = nullptr;  // for each id 1 where a word starts; null where nobody asks for them

  uint32_t first_sentence(uint32_t document) const { return document ? document_ends[document - 1] : 0; }
  uint32_t first_id(uint32_t sentence) const { return sentence ? sentence_ends[sentence - 1] : 0; }
  uint32_t size() const { return first_id(first_sentence(documents)); }  // ids of all documents
};

}  // namespace bertdata
