// Text to documents of token ids: cleaning, splitting and WordPiece. Twin of tokens/.
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

// All ids, the end of each sentence in ids, the end of each document in sentences. One of the two
// id columns is in use.
struct Documents {
  bool wide = false;
  Column<uint16_t> ids16;
  Column<uint32_t> ids32;
  Column<uint32_t> sentence_ends;
  Column<uint32_t> document_ends;
  size_t unknown = 0;  // how many of the ids are [UNK]
  // Of each document that holds what is left out, and none of whose ids are here: its first byte, the byte
  // behind it, and how many documents stand before it.
  Column<uint64_t> left_out;

  template <class Id>
  Column<Id>& ids() {
    if constexpr (sizeof(Id) == 2) return ids16;
    else return ids32;
  }
};

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

  // Adds the lines of one text: a blank line ends a document, any other is a sentence unless it
  // yields no id. The last document is closed at the end of the text.
  void tokenize(const uint8_t* text, size_t size, Documents& out) {
    std::lock_guard<std::mutex> lock(mutex_);
    out.wide = wide_;
    if (wide_)
      run<uint32_t>(text, size, out);
    else
      run<uint16_t>(text, size, out);
    out.unknown = wide_ ? count_unknown(out.ids32) : count_unknown(out.ids16);
  }

  // Adds the ids of count texts, text i being the bytes ends[i-1] to ends[i]. id_ends gets the end of each
  // text's ids, empty ones included. A line end is white space like any other.
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
  static constexpr size_t kLongestCached = 256;
  static constexpr size_t kMostWaiting = 64;
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

  template <class Id>
  void run(const uint8_t* const text, size_t size, Documents& out) {
    Column<Id>& ids = out.ids<Id>();
    const uint8_t *p = text, *const end = text + size;
    const uint8_t* chunk = p;  // start of the current white-space token, and its first id
    size_t chunk_id = ids.size(), sentence_id = ids.size();
    size_t chunk_at = 0;  // among the words that wait, the first of that token
    uint32_t open_document = static_cast<uint32_t>(out.sentence_ends.size());
    const uint8_t *document = p, *line = p, *sentence_end = nullptr;  // of the sentence before in the document
    size_t document_id = ids.size();
    bool blank = true;
    leaves_out_ = false;
    const std::vector<size_t> strings = left_out_.find_strings(text, size);
    auto next_string = strings.begin();

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
    const auto end_line = [&] {
      if (ids.size() > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 tokens in one input");
      if (blank) {
        end_document();
      } else {
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
          for (;;) {  // word, blank, word, which is most of any text
            ShortWord word;
            const unsigned length = read_short_word(p, end, rules_.lower_case, word);
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
    end_line();  // a last line without its newline
    blank = true;
    end_line();  // closes the last document
  }

  struct Ids {
    const uint32_t* data;
    uint32_t count;
  };

  template <class Id>
  static void append(const Ids& found, Column<Id>& ids) {
    Id* to = ids.room(found.count + 3);
    if (found.count <= 3) {  // copies three whatever the count: no misprediction
      for (uint32_t i = 0; i < 3; ++i) to[i] = static_cast<Id>(found.data[i]);
    } else {
      for (uint32_t i = 0; i < found.count; ++i) to[i] = static_cast<Id>(found.data[i]);
    }
    ids.added(found.count);
  }
  // Appends the ids of the words that wait, and finds where those of the white-space token begin whose first
  // word is number chunk_at of them.
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

  // Appends the ids of a word of more than 16 ASCII letters and digits, which the cache does not hold. The place
  // behind the word.
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
    pieces_.resize(count + 3);  // append() reads three
    return {pieces_.data(), count};
  }

  // Length of the special token that the white-space token at p is exactly, else 0.
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

  // True where no word goes on from the sentence that ends before p to the one that begins at next.
  bool is_split_between(const uint8_t* p, const uint8_t* next, const uint8_t* end) const {
    const uint8_t* last = p - 1;
    while ((*last & 0xC0) == 0x80) --last;
    return is_separator(decode_utf8(last, p)) || is_separator(decode_utf8(next, end));
  }
  bool is_separator(uint32_t cp) const {
    const uint8_t properties = Properties::get()[cp], character_class = properties & kClassMask;
    if (left_out_.has_string_with(cp)) return false;
    if (is_python_space(cp)) return cp == '\t' || character_class != kControl;  // which cleaning drops
    return character_class == kPunctuation || (properties & kIdeograph && rules_.splits_ideographs);
  }

  static bool chunk_is_blank(const uint8_t* p, const uint8_t* end) {
    while (p < end)
      if (!is_python_space(decode_utf8(p, end))) return false;
    return true;
  }

  // A run without ASCII white space that holds more than printable ASCII.
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
  bool leaves_out_ = false;  // the document that is read
  std::mutex mutex_;
  ShortWordCache short_words_;
  // Words and punctuation that are read and not yet appended, so that memory is waited for once, not for each.
  ReadWord words_[kMostWaiting];
  size_t waiting_ = 0;
  WordCache unusual_chunks_;
  std::vector<uint32_t> pieces_;
  std::string word_;
};

}  // namespace bertdata
