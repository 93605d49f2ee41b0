// Expands calls in double braces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/mlperf/arguments.h"
#include "wiki/mlperf/limits.h"
#include "wiki/mlperf/site.h"
#include "wiki/mlperf/spans.h"
#include "wiki/mlperf/templates.h"

namespace bertdata::wiki::mlperf {

// Expands the texts of a page. The recursive parts are defined in calls.h.
// Every step spends from the page's work budget and counts Python's frames, so that pages fail exactly where they fail
// in the original (WikiExtractor, see extractor.h).
class Expansion {
 public:
  // A template that is being expanded: its name as written in the call, its arguments, and the call around it.
  struct Caller {
    std::string_view name;
    const Arguments& arguments;
    const Caller* outer;
  };

  Expansion(const Site& site, const Templates& templates, const Compute& function, std::string_view title,
            Work& budget)
      : limits(budget), words_(site, title), site_(site), templates_(templates), compute_(function) {}

  // Appends the text with its outermost calls expanded, from left to right.
  // "a {{b|{{c}}}} d": the call {{b|{{c}}}} is found, and call() expands {{c}} when it reads the argument.
  void expand(std::string_view text, std::string& out) {
    if (depth_ >= kMaxTemplateDepth) return;
    spend_step(text);
    const size_t first = find_mark(text, "{{", 0);
    if (first == npos) {
      out += text;
      return;
    }
    const Limits::Nesting nesting(limits, 1);
    const size_t before = out.size();
    size_t behind = 0;
    for (const Span& span : find_calls(text, first)) {
      out.append(text, behind, span.begin - behind);
      const Limits::Waiting waiting(limits, out.size() - before);
      call(inside(text, span, 2), out);
      behind = span.end;
    }
    out.append(text, behind, npos);
    limits.work.grow(out.size());
  }

  std::string expanded(std::string_view text) {
    std::string out;
    expand(text, out);
    return out;
  }

  // Returns the expansion of the text. The result is in `buffer`, or is the text itself if there is nothing to expand.
  std::string_view expansion_of(std::string_view text, std::string& buffer) {
    if (is_plain(text, 0)) {
      spend_step(text);
      return text;
    }
    expand(text, buffer);
    return buffer;
  }

  // Appends the expanded text. What is between <nowiki> and </nowiki> on a single line is copied unchanged.
  void transform(std::string_view text, std::string& out) {
    constexpr std::string_view kOpen = "<nowiki>", kClose = "</nowiki>";
    const Limits::Nesting nesting(limits, 1);
    size_t behind = 0, line_end = 0;
    for (size_t open = find_mark(text, kOpen, 0); open != npos;) {
      if (line_end != npos && open >= line_end) line_end = text.find('\n', open);
      const size_t close = find_mark(text.substr(0, line_end), kClose, open + kOpen.size());
      if (close == npos) {
        open = line_end == npos ? npos : find_mark(text, kOpen, line_end);
        continue;
      }
      expand(text.substr(behind, open - behind), out);
      out.append(text, open, close + kClose.size() - open);
      behind = close + kClose.size();
      open = find_mark(text, kOpen, behind);
    }
    expand(text.substr(behind), out);
  }

  // Returns whether the text is unchanged by expand() and transform(), and the given number of frames is still
  // available.
  bool is_plain(std::string_view text, int frames) const {
    return depth_ < kMaxTemplateDepth && limits.has_frames(frames) && find_any<'{', '<'>(text, 0) == npos;
  }

  // Spends the cost of expanding a text or filling in its parameters, whether it contains any or not.
  void spend_step(std::string_view text) { limits.work.spend(text.size() + kStepWork); }

  std::string transformed(std::string_view text) {
    std::string out;
    transform(text, out);
    return out;
  }

  // Returns the value of a function that is computed by Python.
  std::string computed(const char* function, const std::vector<std::string>& arguments) {
    for (const std::string& argument : arguments) limits.work.spend(kPythonWork + kPythonByteWork * argument.size());
    std::string value = compute_(function, arguments);
    limits.work.grow(value.size());
    return value;
  }

  // Reads the arguments of a call from part `from` on. If literal, they are not expanded.
  Arguments read_arguments(const std::vector<std::string_view>& parts, size_t from, bool literal);

  const Caller* caller() const { return caller_; }

  Limits limits;

 private:
  void call(std::string_view text, std::string& out);
  void call_function(std::string_view text, std::string_view name, size_t colon, std::string& out);
  void call_template(std::string_view text, std::string_view name, bool literal, std::string& out);
  void substitute(std::string_view text, const Arguments& arguments, int level, std::string& out);

  MagicWords words_;
  const Site& site_;
  const Templates& templates_;
  const Compute& compute_;
  const Caller* caller_ = nullptr;
  int depth_ = 0;
};

}  // namespace bertdata::wiki::mlperf
