// Removes or replaces bold and italic marks and doubled quotes.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// Replaces a pair of marks by its content, with or without quotes around it.
struct QuoteRule {
  std::string_view open, close;
  bool quoted;
  char barrier;  // byte that the content must not contain: a line break or a quote
};

// Returns the position of the mark that closes a content starting at `begin`, or npos.
// barrier: position of the first barrier in the content. If the barrier is a quote, the closing mark must begin with
// it.
inline size_t find_close(const QuoteRule& rule, std::string_view text, size_t begin, size_t barrier) {
  if (rule.barrier == '\n') return find_mark(text.substr(0, barrier), rule.close, begin);
  return barrier != npos && starts_with(text, barrier, rule.close) ? barrier : npos;
}

inline void apply_quote_rule(const QuoteRule& rule, std::string& text, std::string& spare) {
  const std::string_view in = text;
  size_t behind = 0, barrier = 0;
  spare.clear();
  for (size_t at = find_mark(in, rule.open, 0); at != npos;) {
    const size_t begin = at + rule.open.size();
    if (barrier != npos && barrier < begin) barrier = in.find(rule.barrier, begin);
    const size_t close = find_close(rule, in, begin, barrier);
    if (close == npos) {
      // No further barrier means no further closing mark either.
      if (barrier == npos) break;
      at = find_mark(in, rule.open, rule.barrier == '\n' ? barrier : at + 1);
      continue;
    }
    spare.append(in, behind, at - behind);
    if (rule.quoted) spare += '"';
    spare.append(in, begin, close - begin);
    if (rule.quoted) spare += '"';
    behind = close + rule.close.size();
    at = find_mark(in, rule.open, behind);
  }
  if (!behind) return;
  spare.append(in, behind, npos);
  text.swap(spare);
}

// Longest marks first, else '''bold''' would be read as '' followed by 'bold.
inline void clean_quotes(std::string& text, std::string& spare) {
  static constexpr QuoteRule kRules[] = {{"'''''", "'''''", false, '\n'},
                                         {"'''", "'''", false, '\n'},
                                         {"''\"", "\"''", true, '"'},
                                         {"''", "''", true, '\n'}};
  if (holds(text, "''"))
    for (const QuoteRule& rule : kRules) apply_quote_rule(rule, text, spare);
  apply_quote_rule({"\"\"", "\"\"", true, '"'}, text, spare);
  replace_all(text, "'''", "", spare);
  replace_all(text, "''", "\"", spare);
}

}  // namespace bertdata::wiki::mlperf
