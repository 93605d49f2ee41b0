// Bold and italic marks, and doubled quotes.
#pragma once

#include <string>
#include <string_view>

#include "wiki/scan.h"

namespace bertdata::wiki::mlperf {

// What a pair of marks becomes: its content, quoted or not.
struct QuoteRule {
  std::string_view open, close;
  bool quoted;
  char barrier;  // that no content holds: the line's end, or a quote
};

// Where the mark stands that closes a content from `begin` on. npos without one. `barrier`: where the first
// barrier stands in that content; if it is a quote, the closing mark begins with it.
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
