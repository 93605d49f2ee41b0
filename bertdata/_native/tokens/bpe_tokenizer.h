// Turns text into documents of token ids by byte-level BPE. Twin of tokens/bpe/tokens.py and tokens/bpe/tokenizer.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "column.h"
#include "tokens/bpe_added.h"
#include "tokens/bpe_characters.h"
#include "tokens/bpe_merges.h"
#include "tokens/bpe_pretokens.h"
#include "tokens/bpe_words.h"
#include "tokens/tokenizer.h"
#include "unicode/composition.h"

namespace bertdata {

// How a tokeniser separates numbers from other text before the pattern: not at all, each digit alone, or runs of
// digits.
enum class BpeDigits : uint8_t { kNone, kEach, kRuns };

// Settings of a tokeniser.
// prefix_space: put a space before text that does not start with one.
// lengths: number of bytes of each token, by id.
struct BpeRules {
  BpePattern pattern;
  BpeDigits digits;
  bool prefix_space, wide;
  std::vector<uint32_t> lengths;
};

// Documents with word starts: 1 for each id that starts a word. starts and stops are the character ranges of the
// tokens, used by tokenize_each only.
struct BpeDocuments : Documents {
  Column<uint8_t> word_starts;
  Column<uint32_t> starts, stops;
};

// Byte-level BPE tokeniser. The text passes these steps: split off added tokens (in_text_), compose characters (NFC),
// split off the added tokens that are found in normalised text (in_normalized_), separate digits, split into
// pre-tokens, merge.
class ByteBpe {
 public:
  ByteBpe(BpeRules rules, CharacterBitsTable bits, Merges merges, std::vector<AddedToken> in_text,
          std::vector<AddedToken> in_normalized, std::unique_ptr<Composition> composition)
      : rules_(std::move(rules)), bits_(std::move(bits)), pretokens_(rules_.pattern, bits_), words_(std::move(merges)),
        in_text_(std::move(in_text), bits_), in_normalized_(std::move(in_normalized), bits_),
        composition_(std::move(composition)) {}
  ByteBpe(const ByteBpe&) = delete;
  ByteBpe& operator=(const ByteBpe&) = delete;

  // Adds the documents of a text. A line of white space ends a document, and any other line is a sentence. A document
  // is tokenised as a whole, with `between` inserted between its sentences.
  void tokenize(const uint8_t* text, size_t size, std::string_view between, BpeDocuments& out) {
    check_utf8(text, size);
    check_utf8(reinterpret_cast<const uint8_t*>(between.data()), between.size());
    std::lock_guard<std::mutex> lock(mutex_);
    out.wide = rules_.wide;
    if (rules_.wide)
      run_lines<uint32_t>(text, text + size, between, out);
    else
      run_lines<uint16_t>(text, text + size, between, out);
  }

  // Adds the tokens of `count` texts, with their ranges in code points. Text i is the bytes ends[i - 1] to ends[i].
  // id_ends gets the end of each text's ids, also if the text has none.
  void tokenize_each(const uint8_t* text, const uint32_t* ends, size_t count, BpeDocuments& out,
                     Column<uint32_t>& id_ends) {
    uint32_t start = 0;
    for (size_t i = 0; i < count; start = ends[i++]) check_utf8(text + start, ends[i] - start);
    std::lock_guard<std::mutex> lock(mutex_);
    out.wide = rules_.wide;
    start = 0;
    for (size_t i = 0; i < count; start = ends[i++]) {
      open_document();
      add_sentence(text + start, text + ends[i]);
      number_characters();
      if (rules_.wide)
        run_text<uint32_t>(out);
      else
        run_text<uint16_t>(out);
      if (out.word_starts.size() > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 tokens in one input");
      id_ends.push(static_cast<uint32_t>(out.word_starts.size()));
    }
    characters_.clear();
  }

 private:
  static constexpr ptrdiff_t kNever = std::numeric_limits<ptrdiff_t>::max();
  static constexpr size_t kPadding = 16;  // bytes after a text that may be read

  template <class Id>
  void run_lines(const uint8_t* p, const uint8_t* const end, std::string_view between, BpeDocuments& out) {
    characters_.clear();
    open_document();
    while (p < end) {
      const void* const found = std::memchr(p, '\n', static_cast<size_t>(end - p));
      const uint8_t* const stop = found ? static_cast<const uint8_t*>(found) : end;
      if (is_blank(p, stop)) {
        close_document<Id>(out);
      } else {
        // A sentence starts with the text inserted before it: a token that begins in `between` belongs to the next
        // sentence.
        const size_t start = text_.size() - 1;
        if (!sentences_.empty()) text_.insert(text_.end(), between.begin(), between.end());
        sentences_.push_back(static_cast<ptrdiff_t>(start));
        add_sentence(p, stop);
      }
      p = found ? stop + 1 : end;
    }
    close_document<Id>(out);
  }

  static bool is_blank(const uint8_t* p, const uint8_t* end) {
    while (p < end)
      if (!is_python_space(decode_utf8(p, end))) return false;
    return true;
  }

  // Starts a new document. Its text begins at text_[1], because a space may be written before it.
  void open_document() {
    text_.assign(1, ' ');
    sentences_.clear();
    sentence_ = 0;
  }
  void add_sentence(const uint8_t* p, const uint8_t* end) { text_.insert(text_.end(), p, end); }

  template <class Id>
  void close_document(BpeDocuments& out) {
    if (sentences_.empty()) return;
    run_text<Id>(out);
    close_sentence(out.ids<Id>().size(), out);
    const uint32_t last = out.document_ends.size() ? out.document_ends[out.document_ends.size() - 1] : 0;
    if (out.sentence_ends.size() > last) out.document_ends.push(static_cast<uint32_t>(out.sentence_ends.size()));
    open_document();
  }

  static void close_sentence(size_t end, BpeDocuments& out) {
    if (end > 0xFFFFFFFFull) throw std::length_error("more than 4294967295 tokens in one input");
    const uint32_t last = out.sentence_ends.size() ? out.sentence_ends[out.sentence_ends.size() - 1] : 0;
    if (end > last) out.sentence_ends.push(static_cast<uint32_t>(end));
  }

  // Fills characters_: for each byte of the text, the index of its character.
  void number_characters() {
    characters_.clear();
    uint32_t number = 0;
    for (size_t i = 1; i < text_.size(); ++i) {
      if (i > 1 && (text_[i] & 0xC0) != 0x80) ++number;
      characters_.push_back(number);
    }
    characters_.push_back(0);  // never empty, which says that token positions are wanted
  }

  // Tokenises text_ from index 1 on.
  template <class Id>
  void run_text(BpeDocuments& out) {
    if (text_.size() > 0xFFFFFFFFull) throw std::length_error("a document of more than 4294967294 bytes");
    const size_t size = text_.size() - 1;
    text_.resize(text_.size() + kPadding);
    const uint8_t* const text = text_.data() + 1;
    in_text_.split(
        text, text + size,
        [&](const uint8_t* start, const uint8_t* stop) {
          if (composition_ && composition_->may_change(start, stop)) return run_composed<Id>(start, stop, out);
          show(text, 0, false);
          run_normalized<Id>(start, stop, out);
        },
        [&](const uint8_t* start, const uint8_t* stop, const AddedToken& token) {
          show(text, 0, false);
          add_token<Id>(start, stop, token, out);
        });
  }

  // Tokenises a part of the text that composition may change.
  template <class Id>
  void run_composed(const uint8_t* start, const uint8_t* stop, BpeDocuments& out) {
    composed_.assign(1, ' ');
    places_.clear();
    composition_->compose(start, stop, composed_, places_);
    const size_t size = composed_.size() - 1;
    composed_.resize(composed_.size() + kPadding);
    show(composed_.data() + 1, start - (text_.data() + 1), true);
    run_normalized<Id>(composed_.data() + 1, composed_.data() + 1 + size, out);
  }

  // Tokenises a part of the normalised text.
  template <class Id>
  void run_normalized(const uint8_t* start, const uint8_t* stop, BpeDocuments& out) {
    in_normalized_.split(
        start, stop, [&](const uint8_t* p, const uint8_t* end) { run_piece<Id>(p, end, out); },
        [&](const uint8_t* p, const uint8_t* end, const AddedToken& token) { add_token<Id>(p, end, token, out); });
  }

  // Tokenises a piece without added tokens, after separating its digits.
  template <class Id>
  void run_piece(const uint8_t* p, const uint8_t* end, BpeDocuments& out) {
    if (rules_.digits == BpeDigits::kNone) return run_part<Id>(p, end, out);
    while (p < end) {
      const uint8_t* stop = p;
      const uint8_t is_number = bits_.next(stop, end) & kNumericBit;
      while (stop < end && !(is_number && rules_.digits == BpeDigits::kEach)) {
        const uint8_t* after = stop;
        if ((bits_.next(after, end) & kNumericBit) != is_number) break;
        stop = after;
      }
      run_part<Id>(p, stop, out);
      p = stop;
    }
  }

  // Tokenises a part that the pattern is applied to.
  template <class Id>
  void run_part(const uint8_t* p, const uint8_t* end, BpeDocuments& out) {
    part_ = p - base_;
    if (!rules_.prefix_space || *p == ' ') return run_pretokens<Id>(p, end, out);
    // The space counts as the part's first byte, so sentences that end there must end before it.
    if (characters_.empty()) close_sentences<Id>(part_, out);
    // Write the space over the byte before the part and restore that byte afterwards. Copying the part would be slower.
    uint8_t& before = const_cast<uint8_t*>(p)[-1];
    const uint8_t kept = before;
    before = ' ';
    run_pretokens<Id>(p - 1, end, out);
    before = kept;
  }

  template <class Id>
  void run_pretokens(const uint8_t* p, const uint8_t* end, BpeDocuments& out) {
    while (p < end) {
      // Fast path for nearly every English word: an optional space and ASCII letters. The next byte must be ASCII,
      // because a letter of another script would continue the run.
      ShortText word;
      const unsigned length = read_letters(p, word);
      if (length && p + length < end && p[length] < 0x80) {
        emit<Id>(p, p + length, words_.find(word), out);
        p += length;
        continue;
      }
      const uint8_t* const stop = pretokens_.find_end(p, end);
      emit<Id>(p, stop, words_.find(p, stop), out);
      p = stop;
    }
  }

  // Appends the ids of a word whose text is p to stop.
  template <class Id>
  void emit(const uint8_t* p, const uint8_t* stop, const BpeWords::Ids& found, BpeDocuments& out) {
    if (stop - base_ > limit_) return emit_apart<Id>(p, stop, found, out);
    Id* const ids = out.ids<Id>().room(found.count + 3);
    uint8_t* const starts = out.word_starts.room(found.count + 3);
    for (uint32_t i = 0; i < 3; ++i) {  // always writes three: a branch on the count would be mispredicted
      ids[i] = static_cast<Id>(found.data[i]);
      starts[i] = !i;
    }
    for (uint32_t i = 3; i < found.count; ++i) {
      ids[i] = static_cast<Id>(found.data[i]);
      starts[i] = 0;
    }
    out.ids<Id>().added(found.count);
    out.word_starts.added(found.count);
  }

  // Appends the ids of a word singly, because a sentence may end inside the word or token positions are wanted.
  template <class Id>
  void emit_apart(const uint8_t* p, const uint8_t* stop, const BpeWords::Ids& found, BpeDocuments& out) {
    ptrdiff_t at = p - base_;
    for (uint32_t i = 0; i < found.count; ++i) {
      const uint32_t id = found.data[i];
      const ptrdiff_t next = std::min<ptrdiff_t>(at + rules_.lengths.at(id), stop - base_);
      // A space that was put before the part has no position in the text, hence the limits.
      add_id<Id>(id, std::max(at, part_), std::max(next, part_ + 1), i == 0, out);
      at = next;
    }
  }

  template <class Id>
  void add_token(const uint8_t* p, const uint8_t* stop, const AddedToken& token, BpeDocuments& out) {
    add_id<Id>(token.id, p - base_, stop - base_, true, out);
  }

  template <class Id>
  void add_id(uint32_t id, ptrdiff_t start, ptrdiff_t stop, bool starts_word, BpeDocuments& out) {
    if (characters_.empty()) {
      close_sentences<Id>(start, out);
    } else {
      out.starts.push(character(start));
      out.stops.push(character(stop - 1) + 1);
    }
    out.ids<Id>().push(static_cast<Id>(id));
    out.word_starts.push(starts_word);
  }

  // Ends all sentences that end at or before `start`, where a token starts.
  template <class Id>
  void close_sentences(ptrdiff_t start, BpeDocuments& out) {
    while (start >= limit_) {
      close_sentence(out.ids<Id>().size(), out);
      ++sentence_;
      find_limit();
    }
  }

  // Returns the index in the whole text of the character that byte `at` of the shown text comes from.
  uint32_t character(ptrdiff_t at) const {
    const size_t place = composed_shown_ ? places_[static_cast<size_t>(at)] : static_cast<size_t>(at);
    return characters_[static_cast<size_t>(shift_) + place];
  }

  // Sets the text that is tokenised next: the bytes at `base`, which come from text_ from offset `shift` on. If
  // `composed`, places_ maps the bytes.
  void show(const uint8_t* base, ptrdiff_t shift, bool composed) {
    base_ = base;
    shift_ = shift;
    composed_shown_ = composed;
    find_limit();
  }

  // Sets limit_: where the next sentence starts in the shown text. Words that end before it need no check.
  void find_limit() {
    if (!characters_.empty()) {
      limit_ = -2;  // below any position, so every word takes emit_apart
    } else if (sentence_ + 1 >= sentences_.size()) {
      limit_ = kNever;
    } else {
      const ptrdiff_t start = sentences_[sentence_ + 1] - shift_;
      if (composed_shown_)
        limit_ = std::lower_bound(places_.begin(), places_.end(), start,
                                  [](uint32_t place, ptrdiff_t value) { return static_cast<ptrdiff_t>(place) < value; }) -
                 places_.begin();
      else
        limit_ = start;
    }
  }

  BpeRules rules_;
  CharacterBitsTable bits_;
  Pretokens pretokens_;
  BpeWords words_;
  AddedTokens in_text_, in_normalized_;
  std::unique_ptr<Composition> composition_;
  std::mutex mutex_;

  std::vector<uint8_t> text_, composed_;  // the document, and a composed part of it; one byte is free in front
  std::vector<uint32_t> places_;          // for each byte of composed_, its offset in the part that was composed
  std::vector<ptrdiff_t> sentences_;      // where each sentence of the document starts
  std::vector<uint32_t> characters_;      // see number_characters; empty if token positions are not wanted
  size_t sentence_ = 0;
  const uint8_t* base_ = nullptr;
  ptrdiff_t shift_ = 0, part_ = 0, limit_ = kNever;
  bool composed_shown_ = false;
};

}  // namespace bertdata
