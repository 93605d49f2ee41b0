// Finds balanced braces and brackets in wikitext, and splits a call into its parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// A maximal run of two or more equal braces or brackets.
struct Run {
  size_t begin, length;
  char mark;

  size_t end() const { return begin + length; }
};

enum class Marks { kBraces, kBracesAndBrackets };

// Finds the next run at pos or later. Returns false if there is none.
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

// The stack of open runs, as WikiExtractor keeps it. Lengths of braces are positive, of brackets negative.
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

  // Returns whether only a single run is open and is too short for a call or parameter.
  bool too_short(size_t least) const {
    return lengths_.size() == 1 && lengths_[0] > 0 && lengths_[0] < static_cast<int64_t>(least);
  }

  // Closes open braces with `length` closing braces and returns how many are left over. An open bracket in between
  // adds its length to the closing braces. That is an error of the original, which is reproduced here.
  // open 2, closing 3 -> 1 left over. open 3, closing 2 -> 1 stays open
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

  // Closes open brackets in the same way, as far as brackets are on top of the stack.
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

// Returns the position `characters` characters before `end`. Because of the error above, this can go back beyond the
// closing run.
inline size_t step_back(std::string_view text, size_t end, int64_t characters) {
  for (; characters > 0 && end > 0; --characters) end -= decode_before(text, end).length;
  return end;
}

// Appends the outermost balanced spans from pos on. An opening run that is never closed ends the search.
// least: number of braces that open a span (2 for a call, 3 for a parameter), or 0 for two braces or brackets.
// "{{a}} {{b|{{c}}}}" -> [0, 5) and [6, 17)
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
      // Also done if too few braces are left open to make a span.
      settled = open.closed() || (run.mark == '}' && open.too_short(least));
    }
  }
}

// Returns the span without n bytes at both ends.
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

// Splits the text at each "|" outside balanced braces and brackets.
// "a|{{b|c}}|d" -> "a", "{{b|c}}", "d"
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

// Returns the first part, usually without looking at the others.
inline std::string_view first_part(std::string_view text) {
  for (size_t pos = 0;; ++pos) {
    pos = find_any<'|', '{', '['>(text, pos);
    if (pos == npos) return text;
    if (text[pos] == '|') return text.substr(0, pos);
    if (pos + 1 < text.size() && text[pos + 1] == text[pos]) return split_parts(text)[0];
  }
}

}  // namespace bertdata::wiki::mlperf
