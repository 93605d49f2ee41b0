// Balanced braces and brackets of wikitext, and the parts of a call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// A maximal sequence of two or more equal braces or brackets.
struct Run {
  size_t begin, length;
  char mark;

  size_t end() const { return begin + length; }
};

enum class Marks { kBraces, kBracesAndBrackets };

// Whether there is a run at pos or later. It goes into `run`.
template <Marks marks>
bool next_run(std::string_view text, size_t pos, Run& run) {
  while (true) {
    pos = marks == Marks::kBraces ? find_any<'{', '}'>(text, pos) : find_any<'{', '}', '[', ']'>(text, pos);
    if (pos == npos) return false;
    const char mark = text[pos];
    size_t end = pos + 1;
    while (end < text.size() && text[end] == mark) ++end;
    if (end - pos > 1) {
      run = {pos, end - pos, mark};
      return true;
    }
    pos = end;
  }
}

// The stack of runs that are open, as WikiExtractor keeps it: brackets are negative.
class OpenRuns {
 public:
  void begin(const Run& run) {
    lengths_.clear();
    push(run);
  }
  void push(const Run& run) {
    const auto length = static_cast<int64_t>(run.length);
    lengths_.push_back(run.mark == '{' ? length : -length);
  }
  bool closed() const { return lengths_.empty(); }

  // Whether a single run is left, too short for a call or an argument.
  bool too_short(size_t least) const {
    return lengths_.size() == 1 && lengths_[0] > 0 && lengths_[0] < static_cast<int64_t>(least);
  }

  // Closes what it can with `length` closing braces. Returns how many are left. An open bracket in the
  // way adds its length, a fault of the original.
  int64_t close_braces(int64_t length) {
    while (!lengths_.empty()) {
      const int64_t open = lengths_.back();
      lengths_.pop_back();
      if (open == 0) continue;
      if (length < open) {
        lengths_.push_back(open - length);
        break;
      }
      length -= open;
      if (length <= 1) break;
    }
    return length;
  }

  int64_t close_brackets(int64_t length) {
    while (!lengths_.empty() && lengths_.back() < 0) {
      const int64_t open = -lengths_.back();
      lengths_.pop_back();
      if (length < open) {
        lengths_.push_back(length - open);
        break;
      }
      length -= open;
      if (length <= 1) break;
    }
    return length;
  }

 private:
  std::vector<int64_t> lengths_;
};

// So many characters before a position. Those that a fault leaves over can reach beyond the closing run.
inline size_t step_back(std::string_view text, size_t end, int64_t characters) {
  for (; characters > 0 && end > 0; --characters) end -= decode_before(text, end).length;
  return end;
}

// Appends the outermost balanced spans from pos on. least: braces that open one (2: a call, 3: an argument). 0: two
// braces or brackets. An opening run that never closes ends the search.
template <Marks marks>
void find_spans(std::string_view text, size_t pos, size_t least, std::vector<Span>& spans) {
  OpenRuns open;
  Run first, run;
  while (next_run<marks>(text, pos, first)) {
    pos = first.end();
    if (first.mark == '}' || first.mark == ']' || first.length < least) continue;
    open.begin(first);
    bool settled = false;
    while (!settled) {
      if (!next_run<marks>(text, pos, run)) return;
      pos = run.end();
      if (run.mark == '{' || run.mark == '[') {
        open.push(run);
        continue;
      }
      const auto length = static_cast<int64_t>(run.length);
      const int64_t left = run.mark == '}' ? open.close_braces(length) : open.close_brackets(length);
      if (open.closed()) spans.push_back({first.begin, step_back(text, run.end(), left)});
      settled = open.closed() || (run.mark == '}' && open.too_short(least));
    }
  }
}

// The span less n bytes at both ends.
inline std::string_view inside(std::string_view text, const Span& span, size_t n) {
  if (span.end < span.begin + 2 * n) return {};
  return text.substr(span.begin + n, span.end - span.begin - 2 * n);
}

inline std::vector<Span> find_calls(std::string_view text, size_t pos) {
  std::vector<Span> spans;
  find_spans<Marks::kBraces>(text, pos, 2, spans);
  return spans;
}

inline std::vector<Span> find_arguments(std::string_view text) {
  std::vector<Span> spans;
  const size_t first = find_mark(text, "{{{", 0);
  if (first != npos) find_spans<Marks::kBraces>(text, first, 3, spans);
  return spans;
}

// The text cut at each "|" outside balanced braces and brackets.
inline std::vector<std::string_view> split_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  if (text.find('|') == npos) return {text};
  std::vector<Span> spans;
  find_spans<Marks::kBracesAndBrackets>(text, 0, 0, spans);
  size_t begin = 0, pos = 0;
  const auto cut_until = [&](size_t end) {
    const std::string_view open = text.substr(0, end);
    for (size_t bar = open.find('|', pos); bar != npos; bar = open.find('|', pos)) {
      parts.push_back(text.substr(begin, bar - begin));
      begin = pos = bar + 1;
    }
  };
  for (const Span& span : spans) {
    cut_until(span.begin);
    pos = std::max(pos, span.end);
  }
  cut_until(npos);
  parts.push_back(text.substr(begin));
  return parts;
}

// The first of the parts, as a rule without a look at the others.
inline std::string_view first_part(std::string_view text) {
  for (size_t pos = 0;; ++pos) {
    pos = find_any<'|', '{', '['>(text, pos);
    if (pos == npos) return text;
    if (text[pos] == '|') return text.substr(0, pos);
    if (pos + 1 < text.size() && text[pos + 1] == text[pos]) return split_parts(text)[0];
  }
}

}  // namespace bertdata::wiki::mlperf
