// View of a document set (records.Documents in Python) for the kernels that make examples.
#pragma once

#include <cstdint>

namespace bertdata {

// The ids of all documents, and end offsets as in records.Documents: sentence_ends counts ids, document_ends counts
// sentences.
template <class Id>
struct DocumentView {
  const Id* ids;
  const uint32_t* sentence_ends;
  const uint32_t* document_ends;
  uint32_t documents;
  const uint8_t* word_starts = nullptr;  // 1 for each id that starts a word; null if word starts are not needed

  uint32_t first_sentence(uint32_t document) const { return document ? document_ends[document - 1] : 0; }
  uint32_t first_id(uint32_t sentence) const { return sentence ? sentence_ends[sentence - 1] : 0; }
  uint32_t size() const { return first_id(first_sentence(documents)); }  // number of ids in all documents
};

}  // namespace bertdata
