// Finds balanced braces and brackets in wikitext as wikiextractor 3.1.0 pairs them, and splits a call into its parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"

namespace bertdata::wiki::wikiextractor {

// Returns the position `characters` characters before `end`. Because brackets can add to the count (see close_braces),
// this can go back beyond the closing run.
inline size_t step_back(std::string_view text, size_t end, int64_t characters) {
  for (; characters > 0 && end > 0; --characters) end -= decode_before(text, end).length;
  return end;
}

// What to find. The values are the numbers of opening braces.
enum class Kind { kParts = 0, kCall = 2, kArgument = 3 };

// Finds balanced spans. The stack is reused for the next text.
class SpanFinder {
 public:
  // Appends the outermost spans: calls, arguments, or for kParts everything that hides a "|". An opening run that is
  // never closed ends the search.
  // kCall in "{{a}} {{b|{{c}}}}" -> [0, 5) and [6, 17)
  template <Kind kind>
  void find(std::string_view text, std::vector<Span>& spans) {
    constexpr size_t kLeast = kind == Kind::kArgument ? 3 : 2;
    Run first;
    size_t pos = 0;
    base_ = spans.size();
    while (next_run<kind>(text, pos, first)) {
      pos = first.end();
      if (first.mark == '}' || first.mark == ']' || first.length < kLeast) continue;
      // Of four or more opening braces only the last three count: "{{{{x}}}" is "{" and an argument.
      if (first.mark == '{' && first.length > 3) first = {first.end() - 3, 3, '{'};
      if (!close<kind>(text, first, pos, spans)) return;
    }
  }

 private:
  // A maximal run of two or more equal braces or brackets.
  struct Run {
    size_t begin, length;
    char mark;

    size_t end() const { return begin + length; }
  };

  template <Kind kind>
  static bool next_run(std::string_view text, size_t pos, Run& run) {
    while (true) {
      pos = kind == Kind::kParts ? find_any<'{', '}', '[', ']'>(text, pos) : find_any<'{', '}'>(text, pos);
      if (pos == npos) return false;
      size_t end = pos + 1;
      while (end < text.size() && text[end] == text[pos]) ++end;
      if (end - pos > 1) {
        run = {pos, end - pos, text[pos]};
        return true;
      }
      pos = end;
    }
  }

  // Looks for the end of the span that `first` opens. Returns false if the text ends before it. Moves pos past the
  // last run read.
  template <Kind kind>
  bool close(std::string_view text, const Run& first, size_t& pos, std::vector<Span>& spans) {
    // The stack holds the lengths of open runs, braces positive and brackets negative.
    open_.assign(1, first.mark == '{' ? static_cast<int64_t>(first.length) : -static_cast<int64_t>(first.length));
    Run run;
    while (next_run<kind>(text, pos, run)) {
      pos = run.end();
      const auto length = static_cast<int64_t>(run.length);
      if (run.mark == '{' || run.mark == '[') {
        open_.push_back(run.mark == '{' ? length : -length);
        continue;
      }
      const int64_t left = run.mark == '}' ? close_braces(length) : close_brackets(length);
      if (open_.empty()) {
        add<kind>(text, {first.begin, step_back(text, run.end(), left)}, spans);
        return true;
      }
      // Too few braces are left open for another span, so this span begins after them.
      if (run.mark == '}' && open_.size() == 1 && open_[0] > 0 && open_[0] < static_cast<int64_t>(kind)) {
        add<kind>(text, {first.begin + static_cast<size_t>(open_[0]), run.end()}, spans);
        return true;
      }
    }
    return false;
  }

  // Adds a span. An argument is extended to triple braces around it.
  template <Kind kind>
  void add(std::string_view text, Span span, std::vector<Span>& spans) {
    if (kind == Kind::kArgument) {
      const size_t behind = spans.size() == base_ ? 0 : spans.back().end;
      while (span.begin >= behind + 3 && starts_with(text, span.begin - 3, "{{{") &&
             starts_with(text, span.end, "}}}")) {
        span.begin -= 3;
        span.end += 3;
      }
    }
    spans.push_back(span);
  }

  // Closes open braces with `length` closing braces and returns how many are left over. An open bracket in between is
  // dropped, and its length is added to them, as in the package.
  int64_t close_braces(int64_t length) {
    while (!open_.empty()) {
      const int64_t open = open_.back();
      open_.pop_back();
      if (open == 0) continue;
      if (length < open) {
        open_.push_back(open - length);
        break;
      }
      length -= open;
      if (length <= 1) break;
    }
    return length;
  }

  int64_t close_brackets(int64_t length) {
    while (!open_.empty() && open_.back() < 0) {
      const int64_t open = -open_.back();
      open_.pop_back();
      if (length < open) {
        open_.push_back(length - open);
        break;
      }
      length -= open;
      if (length <= 1) break;
    }
    return length;
  }

  std::vector<int64_t> open_;
  size_t base_ = 0;  // index of the current text's first span
};

// Returns the span without n characters at both ends. These need not be braces.
inline std::string_view inside(std::string_view text, const Span& span, size_t n) {
  size_t begin = span.begin, end = span.end;
  for (size_t i = 0; i < n; ++i) {
    if (begin >= end) return {};
    while (++begin < end && is_continuation(text[begin])) {}
  }
  for (size_t i = 0; i < n; ++i) {
    if (end <= begin) return {};
    while (--end > begin && is_continuation(text[end])) {}
  }
  return text.substr(begin, end - begin);
}

// Appends the parts of the text between each "|" outside the spans.
// "a|{{b|c}}|d" -> "a", "{{b|c}}", "d"
inline void split_parts(std::string_view text, SpanFinder& finder, std::vector<Span>& spans,
                        std::vector<std::string_view>& parts) {
  size_t bar = text.find('|');
  if (bar == npos) {
    parts.push_back(text);
    return;
  }
  const size_t base = spans.size();
  size_t next = base, begin = 0;
  finder.find<Kind::kParts>(text, spans);
  while (bar != npos) {
    while (next < spans.size() && spans[next].end <= bar) ++next;
    if (next < spans.size() && spans[next].begin <= bar) {
      bar = text.find('|', spans[next].end);
      continue;
    }
    parts.push_back(text.substr(begin, bar - begin));
    begin = bar + 1;
    bar = text.find('|', begin);
  }
  parts.push_back(text.substr(begin));
  spans.resize(base);
}

}  // namespace bertdata::wiki::wikiextractor
