// Turns text into documents of token ids: cleaning, splitting and WordPiece. Twin of the modules in tokens/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "column.h"
#include "tokens/basic.h"
#include "tokens/left_out.h"
#include "tokens/short_words.h"
#include "tokens/word_cache.h"
#include "tokens/wordpiece.h"
#include "unicode/unicode.h"

namespace bertdata {

// The ids of all documents, the end of each sentence counted in ids, and the end of each document counted in
// sentences. Only the id column that `wide` selects is used.
struct Documents {
  bool wide = false;
  Column<uint16_t> ids16;
  Column<uint32_t> ids32;
  Column<uint32_t> sentence_ends;
  Column<uint32_t> document_ends;
  size_t unknown = 0;  // number of [UNK] among the ids
  // Three numbers for each document that is left out and has no ids here: the byte where it starts, the byte where it
  // ends, and the number of kept documents before it.
  Column<uint64_t> left_out;

  template <class Id>
  Column<Id>& ids() {
    if constexpr (sizeof(Id) == 2) return ids16;
    else return ids32;
  }
};

// WordPiece tokeniser with caches.
// Printable ASCII, most of any text, takes the fast path: words of letters and digits and single punctuation
// characters are looked up in a cache. A white-space token that has any other byte is tokenised as a whole by
// WordSplitter.
class Tokenizer {
 public:
  Tokenizer(const std::vector<std::string>& tokens, const std::vector<uint32_t>& ids, uint32_t unknown,
            const TokenRules& rules, LeftOut left_out = {})
      : rules_(rules),
        unknown_(unknown),
        wordpiece_(tokens, ids, unknown, rules.max_word_chars),
        special_ids_(tokens, ids),
        left_out_(std::move(left_out)),
        splitter_(rules_, wordpiece_, special_ids_, left_out_) {
    for (uint32_t id : ids) wide_ |= id > 0xFFFF;
    for (int c = 0; c < 256; ++c) kinds_[c] = kind_of(static_cast<uint8_t>(c));
  }

  bool wide() const { return wide_; }

  // Adds the documents of a text. A blank line ends a document, and any other line is a sentence unless it yields no
  // id. The end of the text ends the last document.
  void tokenize(const uint8_t* text, size_t size, Documents& out) {
    std::lock_guard<std::mutex> lock(mutex_);
    out.wide = wide_;
    if (wide_)
      run<uint32_t>(text, size, out);
    else
      run<uint16_t>(text, size, out);
    out.unknown = wide_ ? count_unknown(out.ids32) : count_unknown(out.ids16);
  }

  // Adds the ids of `count` texts. Text i is the bytes ends[i - 1] to ends[i]. id_ends gets the end of each text's
  // ids, also if the text has none. Line breaks count as white space.
  void tokenize_each(const uint8_t* text, const uint32_t* ends, size_t count, Documents& out,
                     Column<uint32_t>& id_ends) {
    std::lock_guard<std::mutex> lock(mutex_);
    out.wide = wide_;
    uint32_t start = 0;
    for (size_t i = 0; i < count; start = ends[i++]) {
      if (wide_)
        run<uint32_t>(text + start, ends[i] - start, out);
      else
        run<uint16_t>(text + start, ends[i] - start, out);
      out.sentence_ends.truncate(0);
      out.document_ends.truncate(0);
      id_ends.push(static_cast<uint32_t>(wide_ ? out.ids32.size() : out.ids16.size()));
    }
  }

 private:
  enum class Kind : uint8_t { kWord, kPunctuation, kSpace, kNewline, kUnusual };
  // Longest white-space token, in bytes, that is cached.
  static constexpr size_t kLongestCached = 256;
  // Most short words that wait for their cache entries.
  static constexpr size_t kMostWaiting = 64;
  // Value of chunk_at if the first word of the current white-space token has been appended already.
  static constexpr size_t kAppended = SIZE_MAX;

  static Kind kind_of(uint8_t c) {
    if (c == '\n') return Kind::kNewline;
    if (c == ' ' || c == '\t' || c == '\r') return Kind::kSpace;
    if (is_ascii_word(c)) return Kind::kWord;
    return c > 32 && c < 127 ? Kind::kPunctuation : Kind::kUnusual;
  }

  template <class Id>
  size_t count_unknown(const Column<Id>& ids) const {
    return static_cast<size_t>(std::count(ids.data(), ids.data() + ids.size(), static_cast<Id>(unknown_)));
  }

  // Two states are kept while reading. `chunk` is the current white-space token, which may have to be taken back:
  // "caf" is fast-path text until the byte of "é" comes. Words wait in words_ until their cache entries have been
  // loaded.
  template <class Id>
  void run(const uint8_t* const text, size_t size, Documents& out) {
    Column<Id>& ids = out.ids<Id>();
    const uint8_t *p = text, *const end = text + size;
    const uint8_t* chunk = p;  // start of the current white-space token, and the index of its first id
    size_t chunk_id = ids.size(), sentence_id = ids.size();
    size_t chunk_at = 0;  // index in words_ of the token's first word, if that word still waits
    uint32_t open_document = static_cast<uint32_t>(out.sentence_ends.size());
    // sentence_end: end of the document's previous sentence, null before the first.
    const uint8_t *document = p, *line = p, *sentence_end = nullptr;
    size_t document_id = ids.size();
    bool blank = true;
    leaves_out_ = false;
    const std::vector<size_t> strings = left_out_.find_strings(text, size);
    auto next_string = strings.begin();

    // Ends the current document before p: as a document of `out`, or as a left-out one whose ids are removed again.
    const auto end_document = [&] {
      for (; next_string != strings.end() && text + *next_string < p; ++next_string) leaves_out_ = true;
      if (leaves_out_) {
        ids.truncate(document_id);
        out.sentence_ends.truncate(open_document);
        for (const size_t of : {static_cast<size_t>(document - text), static_cast<size_t>(p - text),
                                out.document_ends.size()})
          out.left_out.push(of);
      } else if (out.sentence_ends.size() > open_document) {
        open_document = static_cast<uint32_t>(out.sentence_ends.size());
        out.document_ends.push(open_document);
      }
      leaves_out_ = false;
      document = p;
      document_id = ids.size();
      sentence_end = nullptr;
    };
    // Ends the line before p: as the end of the document if the line is blank, else as a sentence.
    const auto end_line = [&] {
      if (ids.size() > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 tokens in one input");
      if (blank) {
        end_document();
      } else {
        // With joins_lines, a word could continue across the line break. Then the document is left out.
        if (rules_.joins_lines && sentence_end && !is_split_between(sentence_end, line, end)) leaves_out_ = true;
        sentence_end = p > line && p[-1] == '\n' ? p - 1 : p;
        if (ids.size() > sentence_id) out.sentence_ends.push(static_cast<uint32_t>(ids.size()));
      }
      sentence_id = chunk_id = ids.size();
      line = p;
      blank = true;
    };

    while (p < end) {
      if (waiting_ == kMostWaiting) append_waiting(chunk_at, chunk_id, ids);
      switch (kinds_[*p]) {
        case Kind::kWord:
          blank = false;
          for (;;) {  // word, space, word: the most frequent case stays in this loop
            ShortWord word;
            const unsigned length = read_short_word(p, end, rules_.lower_case, word);
            // A word of more than 16 bytes is not cached.
            if (length == 16 && end - p > 16 && kinds_[p[16]] == Kind::kWord) {
              append_waiting(chunk_at, chunk_id, ids);
              p = append_long_word(p, end, ids);
              break;
            }
            words_[waiting_++] = short_words_.fetch(word, length);
            p += length;
            if (waiting_ == kMostWaiting || end - p < 2 || *p != ' ' || kinds_[p[1]] != Kind::kWord) break;
            chunk = ++p;
            chunk_at = waiting_;
          }
          break;
        case Kind::kPunctuation:
          blank = false;
          // Special tokens such as [SEP] are recognised only as whole white-space tokens.
          if (rules_.keeps_special_tokens && p == chunk && *p == '[') {
            if (const size_t length = special_token(p, end)) {
              append_waiting(chunk_at, chunk_id, ids);
              ids.push(static_cast<Id>(special_id(p, length)));
              p += length;
              break;
            }
          }
          words_[waiting_++] = short_words_.fetch({*p++, 0}, 1);
          break;
        case Kind::kSpace:
          chunk = ++p;
          chunk_at = waiting_;
          break;
        case Kind::kNewline:
          append_waiting(chunk_at, chunk_id, ids);
          chunk = ++p;
          chunk_at = 0;
          end_line();
          break;
        case Kind::kUnusual: {
          // Take the token back: drop its waiting words, append the words of earlier tokens, remove the ids it has
          // already, and tokenise the whole token again.
          while (p < end && kinds_[*p] != Kind::kSpace && kinds_[*p] != Kind::kNewline) ++p;
          waiting_ = std::min(waiting_, chunk_at);
          append_waiting(chunk_at, chunk_id, ids);
          ids.truncate(chunk_id);
          append(unusual_chunk(text, chunk, p), ids);
          blank = blank && chunk_is_blank(chunk, p);
          break;
        }
      }
    }
    append_waiting(chunk_at, chunk_id, ids);
    end_line();  // last line without a line break
    blank = true;
    end_line();  // ends the last document
  }

  // The ids of a word. Three ids can always be read, even if count is smaller.
  struct Ids {
    const uint32_t* data;
    uint32_t count;
  };

  template <class Id>
  static void append(const Ids& found, Column<Id>& ids) {
    Id* to = ids.room(found.count + 3);
    if (found.count <= 3) {  // always copies three: a branch on the count would be mispredicted
      for (uint32_t i = 0; i < 3; ++i) to[i] = static_cast<Id>(found.data[i]);
    } else {
      for (uint32_t i = 0; i < found.count; ++i) to[i] = static_cast<Id>(found.data[i]);
    }
    ids.added(found.count);
  }
  // Appends the ids of the waiting words and empties words_. If the current white-space token starts at a waiting
  // word, sets chunk_id to the index of its first id.
  template <class Id>
  void append_waiting(size_t& chunk_at, size_t& chunk_id, Column<Id>& ids) {
    for (size_t i = 0; i < waiting_; ++i) {
      if (i == chunk_at) chunk_id = ids.size();
      append(short_word(words_[i]), ids);
    }
    if (chunk_at == waiting_) chunk_id = ids.size();
    chunk_at = kAppended;
    waiting_ = 0;
  }

  Ids short_word(const ReadWord& read) {
    ShortWordCache::Entry* entry = &short_words_.find(read.word, read.hash);
    if (!entry->count) {
      pieces_.clear();
      char letters[16];
      std::memcpy(letters, &read.word, 16);
      wordpiece_.split(std::string_view(letters, read.length), read.length, pieces_);
      entry = &short_words_.add(*entry, read.word, pieces_);
    }
    return {short_words_.ids(*entry), entry->count};
  }

  // Appends the ids of a word of more than 16 ASCII letters and digits and returns the word's end.
  template <class Id>
  const uint8_t* append_long_word(const uint8_t* p, const uint8_t* end, Column<Id>& ids) {
    word_.clear();
    for (; p < end && kinds_[*p] == Kind::kWord; ++p)
      word_.push_back(static_cast<char>(rules_.lower_case ? *p | 0x20 : *p));
    pieces_.clear();
    wordpiece_.split(word_, word_.size(), pieces_);
    append(padded_pieces(), ids);
    return p;
  }

  Ids padded_pieces() {
    const uint32_t count = static_cast<uint32_t>(pieces_.size());
    pieces_.resize(count + 3);  // append() always reads three
    return {pieces_.data(), count};
  }

  // Returns the length of the special token at p if it is the whole white-space token, else 0.
  size_t special_token(const uint8_t* p, const uint8_t* end) const {
    for (const auto& special : special_ids_) {
      const size_t length = special.first.size();
      if (static_cast<size_t>(end - p) < length || std::memcmp(p, special.first.data(), length)) continue;
      if (p + length == end || kinds_[p[length]] == Kind::kSpace || kinds_[p[length]] == Kind::kNewline)
        return length;
    }
    return 0;
  }
  uint32_t special_id(const uint8_t* p, size_t length) const {
    return *special_ids_.find(std::string_view(reinterpret_cast<const char*>(p), length));
  }

  // Returns whether no word can go on from the sentence that ends before p to the sentence that begins at `next`.
  bool is_split_between(const uint8_t* p, const uint8_t* next, const uint8_t* end) const {
    const uint8_t* last = p - 1;
    while ((*last & 0xC0) == 0x80) --last;
    return is_separator(decode_utf8(last, p)) || is_separator(decode_utf8(next, end));
  }
  // Returns whether the character surely separates words, whatever cleaning does to the text around it.
  bool is_separator(uint32_t cp) const {
    const uint8_t properties = Properties::get()[cp], character_class = properties & kClassMask;
    if (left_out_.has_string_with(cp)) return false;
    // Cleaning removes the other control characters, so they do not separate words.
    if (is_python_space(cp)) return cp == '\t' || character_class != kControl;
    return character_class == kPunctuation || (properties & kIdeograph && rules_.splits_ideographs);
  }

  static bool chunk_is_blank(const uint8_t* p, const uint8_t* end) {
    while (p < end)
      if (!is_python_space(decode_utf8(p, end))) return false;
    return true;
  }

  // Returns the ids of a white-space token that has other bytes than printable ASCII. Sets leaves_out_ if it contains
  // a left-out code point.
  Ids unusual_chunk(const uint8_t* text, const uint8_t* first, const uint8_t* last) {
    const std::string_view chunk(reinterpret_cast<const char*>(first), static_cast<size_t>(last - first));
    const bool cached = chunk.size() <= kLongestCached;
    WordCache::Place place{};
    if (cached) {
      place = unusual_chunks_.find(chunk);
      if (place.found) {
        const WordCache::Ids found = unusual_chunks_.ids(place);
        pieces_.assign(found.data, found.data + found.count);
        return padded_pieces();
      }
    }
    pieces_.clear();
    const bool knows_all = splitter_.split(text, first, last, pieces_);
    leaves_out_ = leaves_out_ || !knows_all;
    if (cached && knows_all) unusual_chunks_.add(place, chunk, pieces_);
    return padded_pieces();
  }

  TokenRules rules_;
  uint32_t unknown_;
  WordPiece wordpiece_;
  bool wide_ = false;
  Kind kinds_[256];
  SpecialIds special_ids_;
  LeftOut left_out_;
  WordSplitter splitter_;
  bool leaves_out_ = false;  // the current document contains left-out text
  std::mutex mutex_;
  ShortWordCache short_words_;
  // Short words and punctuation that were read but not appended yet. Their cache entries are loaded meanwhile, so the
  // loop waits for memory once for 64 words instead of for each word.
  ReadWord words_[kMostWaiting];
  size_t waiting_ = 0;
  WordCache unusual_chunks_;
  std::vector<uint32_t> pieces_;
  std::string word_;
};

}  // namespace bertdata
