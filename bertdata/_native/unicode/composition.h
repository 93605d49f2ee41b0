// Canonical composition (NFC) with the data of Unicode 9.0, as the library tokenizers does it. Twin of
// unicode/composition.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "unicode/unicode.h"

namespace bertdata {

// Composes texts. Its buffers are reused for the next text, so threads must not share it.
class Composition {
 public:
  // Prepares the tables.
  // newer_marks: combining characters of Unicode 11.0 that are unassigned in 9.0.
  // never: composites that are never composed.
  Composition(const std::vector<uint32_t>& newer_marks, const std::vector<uint32_t>& never)
      : classes_(kCodePoints), kinds_(kCodePoints) {
    for (const auto& mark : unicode11::k_combining) classes_[mark.from] = mark.ccc;
    for (uint32_t cp : newer_marks) classes_.at(cp) = 0;
    add_pairs(never);
    for (uint32_t cp = kVowels; cp < kVowels + 21; ++cp) kinds_[cp] |= kComposes;
    for (uint32_t cp = kTrailing + 1; cp < kTrailing + 28; ++cp) kinds_[cp] |= kComposes;
  }

  // Returns false only if the text is already in NFC. A quick test that lets nearly all text skip compose().
  bool may_change(const uint8_t* p, const uint8_t* end) const {
    uint8_t last = 0;
    while (p < end) {
      if (*p < 0xCC) {  // below U+0300 all characters are in NFC, and none combines
        p += *p < 0x80 ? 1 : 2;
        last = 0;
        continue;
      }
      const uint32_t cp = decode_utf8(p, end);
      if (kinds_[cp] & (kChanges | kComposes)) return true;
      // Combining marks must be in ascending order of their class.
      if (classes_[cp] && last > classes_[cp]) return true;
      last = classes_[cp];
    }
    return false;
  }

  // Appends the composed text to `composed`, and to `places`, for each byte appended, the offset in `text` of the
  // character it comes from.
  // "e" U+0301 "x" -> composed "é" "x", places 0 0 3
  void compose(const uint8_t* const text, const uint8_t* const end, std::vector<uint8_t>& composed,
               std::vector<uint32_t>& places) {
    decompose(text, end);
    join();
    std::string bytes;
    const uint8_t *p = text, *before = text;  // the next character to be replaced, and the character before it
    const auto skip = [&] {
      before = p;
      if (p < end) decode_utf8(p, end);
    };
    for (const Change& change : joined_) {
      const uint8_t* const stands_for = change.added > 0 ? before : p;
      for (int32_t i = change.added; i <= 0; ++i) skip();
      bytes.clear();
      append_utf8(change.cp, bytes);
      composed.insert(composed.end(), bytes.begin(), bytes.end());
      places.insert(places.end(), bytes.size(), static_cast<uint32_t>(stands_for - text));
    }
  }

 private:
  static constexpr uint32_t kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7, kSyllables = 0xAC00;
  // kDecomposes: has a decomposition. kChanges: its decomposition is never composed again. kComposes: can be the
  // second character of a composite.
  enum Kind : uint8_t { kDecomposes = 1, kChanges = 2, kComposes = 4 };

  // A character and the number of characters it adds. 1: added by decomposition. 0: replaces a single character. -n:
  // also replaces n following characters.
  struct Change {
    uint32_t cp;
    int32_t added;
  };

  void add_pairs(const std::vector<uint32_t>& never) {
    std::unordered_map<std::string, uint32_t> whole;  // composites by their full decomposition
    for (const auto& mapping : unicode11::k_decomposition) kinds_[mapping.from] |= kDecomposes | kChanges;
    for (const auto& mapping : unicode11::k_decomposition) {
      const bool is_never = std::find(never.begin(), never.end(), mapping.from) != never.end();
      if (is_never || !mapping.to[1]) continue;
      kinds_[mapping.from] = kDecomposes;
      whole[parts(mapping, 0)] = mapping.from;
    }
    // The table holds full decompositions, but composition works pair by pair. The first character of the last pair is
    // the composite of all characters except the last.
    // U+1ED7 (o circumflex tilde): o + circumflex -> U+00F4, then U+00F4 + tilde
    for (const auto& mapping : unicode11::k_decomposition) {
      if (kinds_[mapping.from] & kChanges) continue;
      size_t count = 0;
      while (count < std::size(mapping.to) && mapping.to[count]) ++count;
      const auto found = whole.find(parts(mapping, 1));
      const uint32_t first = count == 2 ? mapping.to[0] : found == whole.end() ? 0 : found->second;
      pairs_[pair_key(first, mapping.to[count - 1])] = mapping.from;
      kinds_[mapping.to[count - 1]] |= kComposes;
    }
  }

  // Returns the decomposition without its last `without` characters, in UTF-8.
  static std::string parts(const unicode11::Mapping& mapping, size_t without) {
    size_t count = 0;
    while (count < std::size(mapping.to) && mapping.to[count]) ++count;
    std::string bytes;
    for (size_t i = 0; i + without < count; ++i) append_utf8(mapping.to[i], bytes);
    return bytes;
  }

  static uint64_t pair_key(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

  // Writes the canonical decomposition to changes_, with runs of combining characters in canonical order.
  void decompose(const uint8_t* p, const uint8_t* end) {
    changes_.clear();
    size_t run = 0;  // start of the last run of combining characters
    const auto sort_run = [&] {
      std::stable_sort(changes_.begin() + static_cast<ptrdiff_t>(run), changes_.end(),
                       [this](const Change& a, const Change& b) { return classes_[a.cp] < classes_[b.cp]; });
    };
    while (p < end) {
      decomposed_.clear();
      const uint32_t cp = decode_utf8(p, end);
      if (cp >= kSyllables && cp < kSyllables + 11172)
        decompose_hangul(cp, decomposed_);
      else
        append_mapping(kinds_[cp] & kDecomposes ? find_mapping(unicode11::k_decomposition, cp) : nullptr, cp,
                       decomposed_);
      for (size_t i = 0; i < decomposed_.size(); ++i) {
        const Change change{decomposed_[i], i ? 1 : 0};
        if (!classes_[change.cp]) sort_run();
        changes_.push_back(change);
        if (!classes_[change.cp]) run = changes_.size();
      }
    }
    sort_run();
  }

  // Composes changes_ into joined_: each starter with the marks after it. A mark is blocked if a mark of the same or a
  // higher class is between it and the starter.
  void join() {
    joined_.clear();
    bool has_starter = false;
    size_t starter = 0;
    uint8_t last = 0;
    for (const Change& change : changes_) {
      const uint8_t combining = classes_[change.cp];
      if (has_starter && (starter + 1 == joined_.size() || last < combining)) {
        if (const uint32_t composite = pair(joined_[starter].cp, change.cp)) {
          joined_[starter] = {composite, joined_[starter].added + change.added - 1};
          continue;
        }
      }
      if (!combining) {
        starter = joined_.size();
        has_starter = true;
      }
      joined_.push_back(change);
      last = combining;
    }
  }

  // Returns the composite of two characters, or 0.
  uint32_t pair(uint32_t first, uint32_t second) const {
    if (!(kinds_[second] & kComposes)) return 0;
    if (first - kLeading < 19 && second - kVowels < 21)
      return kSyllables + ((first - kLeading) * 21 + second - kVowels) * 28;
    if (first - kSyllables < 11172 && (first - kSyllables) % 28 == 0 && second - kTrailing < 28)
      return first + second - kTrailing;
    const auto found = pairs_.find(pair_key(first, second));
    return found == pairs_.end() ? 0 : found->second;
  }

  std::vector<uint8_t> classes_, kinds_;
  std::unordered_map<uint64_t, uint32_t> pairs_;
  std::vector<Change> changes_, joined_;
  Text decomposed_;
};

}  // namespace bertdata
