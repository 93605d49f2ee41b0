// Counts how deeply arguments are nested in a template's text, as the wikiextractor package parses them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wiki/wikiextractor/limits.h"
#include "wiki/wikiextractor/spans.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Counts each text once. A text is identified by its address in the template file. The package parses a text
// completely, including defaults that a call does not need, so the whole text counts.
class ArgumentNesting {
 public:
  // Returns the nesting depth of the text's arguments, or an upper bound if that is small enough. At most kMost.
  int of(std::string_view text, Work& work) {
    const int possible = bound(text);
    work.spend(text.size());
    if (possible <= kFew) return possible;
    auto [found, is_new] = counted_.try_emplace(text.data());
    if (is_new) {
      handled_ = 0;
      found->second.levels = count(text, 0);
      found->second.work = handled_;
    }
    work.spend(found->second.work);
    return found->second.levels;
  }

 private:
  // Depths up to this are always allowed.
  static constexpr int kFew = (kMostFrames - kTextFrames * kMostNestedTexts) / kArgumentFrames;
  static constexpr int kMost = kMostFrames / kArgumentFrames + 1;

  struct Counted {
    int levels;
    uint64_t work;  // work of counting; spent again by each use, so that a page's limit does not depend on other pages
  };

  // Returns an upper bound of the depth: each level needs three opening braces.
  static int bound(std::string_view text) {
    size_t braces = 0;
    for (size_t at = find_mark(text, "{{{", 0); at != npos; at = find_mark(text, "{{{", at)) {
      const size_t end = std::min(text.find_first_not_of('{', at), text.size());
      braces += end - at;
      at = end;
      if (braces > 3 * kMost) break;
    }
    return static_cast<int>(std::min<size_t>(braces / 3, kMost));
  }

  int count(std::string_view text, int level) {
    handled_ += text.size();
    if (level >= kMost || find_mark(text, "{{{", 0) == npos) return 0;
    int most = 0;
    const size_t base = spans_.size();
    finder_.find<Kind::kArgument>(text, spans_);
    for (size_t i = base; i < spans_.size(); ++i) {
      const size_t first = parts_.size();
      split_parts(inside(text, spans_[i], 3), finder_, spans_, parts_);
      const std::string_view name = parts_[first];
      const std::string_view other = parts_.size() > first + 1 ? parts_[first + 1] : std::string_view();
      parts_.resize(first);
      most = std::max({most, 1 + count(name, level + 1), 1 + count(other, level + 1)});
    }
    spans_.resize(base);
    return most;
  }

  std::unordered_map<const char*, Counted> counted_;
  uint64_t handled_ = 0;
  SpanFinder finder_;
  std::vector<Span> spans_;
  std::vector<std::string_view> parts_;
};

}  // namespace bertdata::wiki::wikiextractor
