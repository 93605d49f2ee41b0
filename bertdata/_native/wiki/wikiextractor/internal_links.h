// Replaces internal links by their labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/cut.h"
#include "wiki/scan.h"
#include "wiki/wikiextractor/limits.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Finds balanced [[ ... ]]. Openers that are never closed are ignored.
class LinkFinder {
 public:
  // Returns the outermost links, in order. Brackets are read in pairs.
  const std::vector<Span>& find(std::string_view text) {
    links_.clear();
    open_.clear();
    for (size_t pos = find_any<'[', ']'>(text, 0); pos != npos; pos = find_any<'[', ']'>(text, pos)) {
      if (pos + 1 >= text.size() || text[pos + 1] != text[pos]) {
        ++pos;
        continue;
      }
      if (text[pos] == '[') {
        open_.push_back(pos);
      } else if (!open_.empty()) {
        const Span link{open_.back(), pos + 2};
        open_.pop_back();
        while (!links_.empty() && links_.back().begin > link.begin) links_.pop_back();  // links inside this link
        links_.push_back(link);
      }
      pos += 2;
    }
    return links_;
  }

 private:
  std::vector<Span> links_;
  std::vector<size_t> open_;
};

// Returns the end of the link that begins at pos, or npos if it is never closed.
inline size_t find_link_end(std::string_view text, size_t pos) {
  size_t depth = 0;
  while ((pos = find_any<'[', ']'>(text, pos)) != npos) {
    if (pos + 1 >= text.size() || text[pos + 1] != text[pos]) {
      ++pos;
      continue;
    }
    depth += text[pos] == '[' ? 1 : 0;
    if (text[pos] == ']' && depth > 0 && --depth == 0) return pos + 2;
    pos += 2;
  }
  return npos;
}

// Appends the text, and drops brackets beyond two at the start of a link and as many at its end. Returns false, and
// appends nothing, if there are none.
// "[[[A]]]" -> "[[A]]"
inline bool drop_extra_brackets(std::string_view text, std::string& out, Work& work) {
  size_t behind = 0, pos = 0;
  bool changed = false;
  while ((pos = find_mark(text, "[[[", pos)) != npos) {
    size_t run_end = pos;
    while (run_end < text.size() && text[run_end] == '[') ++run_end;
    const size_t link = run_end - 2, extra = link - pos;
    const size_t end = find_link_end(text, link);
    work.spend(kScanCost * ((end == npos ? text.size() : end) - pos));
    size_t close = end == npos ? npos : end;
    while (close != npos && close < text.size() && text[close] == ']' && close - end < extra) ++close;
    const bool paired = end != npos && close - end == extra;
    if (!paired && end != npos && end != text.size()) {
      pos = run_end;
      continue;
    }
    changed = true;
    out.append(text, behind, pos - behind);
    const size_t kept = end == npos ? run_end : end;
    out.append(text, link, kept - link);
    behind = pos = paired ? close : kept;
  }
  if (changed) out.append(text, behind, npos);
  return changed;
}

// Returns whether a link with this title is dropped: it belongs to another namespace or wiki.
inline bool is_dropped(std::string_view title) {
  const auto is_kept = [](std::string_view place) { return place == "w" || place == "wiktionary" || place == "wikt"; };
  const size_t colon = title.find(':');
  if (colon == npos) return false;
  if (colon > 0) return !is_kept(title.substr(0, colon));
  const size_t second = title.find(':', 1);
  return second != npos && second > 1 && !is_kept(title.substr(1, second - 1));
}

class InternalLinks {
 public:
  // Appends the text with its links replaced. Returns false, and appends nothing, if there are no links.
  bool replace(std::string_view text, std::string& out, Work& work) {
    const std::vector<Span>& links = outer_.find(text);
    size_t behind = 0;
    for (const Span& link : links) {
      out.append(text, behind, link.begin - behind);
      append_label(text.substr(link.begin + 2, link.end - link.begin - 4), out, work);
      behind = link.end;
    }
    if (links.empty()) return false;
    out.append(text, behind, npos);
    return true;
  }

 private:
  // Appends the label of a link. It starts after the last bar that comes before one of the inner links.
  // File:x.jpg|thumb|see [[A|b]] -> "see [[A|b]]"
  void append_label(std::string_view link, std::string& out, Work& work) {
    work.spend(link.size());
    size_t bar = link.find('|');
    if (bar == npos) {
      if (!is_dropped(link)) out.append(link);
      return;
    }
    if (is_dropped(strip_right(link.substr(0, bar)))) return;
    size_t begin = bar + 1, from = begin;
    if (find_mark(link, "[[", 0) != npos) {
      for (const Span& within : inner_.find(link)) {
        if (within.begin >= from && within.begin > 0) {
          const size_t last = link.rfind('|', within.begin - 1);
          if (last != npos && last >= from) begin = last + 1;
        }
        from = within.end;
      }
    }
    out.append(strip(link.substr(begin)));
  }

  LinkFinder outer_, inner_;
};

}  // namespace bertdata::wiki::wikiextractor
