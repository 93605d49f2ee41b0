// Turns a page's text into an article. The steps are listed in order in clean().
#pragma once

#include <string>
#include <string_view>

#include "wiki/cut.h"
#include "wiki/entities.h"
#include "wiki/wikiextractor/elements.h"
#include "wiki/wikiextractor/expansion.h"
#include "wiki/wikiextractor/external_links.h"
#include "wiki/wikiextractor/internal_links.h"
#include "wiki/wikiextractor/lines.h"
#include "wiki/wikiextractor/placeholders.h"
#include "wiki/wikiextractor/quotes.h"
#include "wiki/wikiextractor/tags.h"
#include "wiki/wikiextractor/typography.h"

namespace bertdata::wiki::wikiextractor {

// Renders articles. The buffers are reused for the next page.
class Renderer {
 public:
  Renderer(const Site& site, CallMemo& memo) : site_(site), memo_(memo) {}

  // Appends the article, from <doc ...> to </doc>. Throws Unknown or LimitReached.
  void render(std::string_view id, std::string_view title, std::string_view text, Work& work, std::string& out) {
    text_.clear();
    Expander(site_, title, memo_, work).expand(text, text_);
    work.spend(kSteps * text_.size());
    clean(work);
    if (has_surrogate(text_)) throw Unknown("a surrogate, which no file in UTF-8 can hold");
    out.append("<doc id=\"").append(id).append("\" url=\"").append(site_.url_base).append("?curid=").append(id);
    out.append("\" title=\"").append(title).append("\">\n").append(title).append("\n\n");
    Lines::append(text_, out);
    out.append("\n\n</doc>\n");
  }

 private:
  static constexpr uint64_t kSteps = 10;  // number of scans of a text that has nothing to replace

  // Each step works on the result of the one before, so the order decides what the text becomes.
  void clean(Work& work) {
    drop_tables();
    replace_links(work);
    drop_switches();
    if (text_.find('&') != npos) {
      spare_.clear();
      append_unescaped_but_code(text_, Words::unicode14(), spare_);
      text_.swap(spare_);
    }
    Quotes::replace(text_, spare_);
    BreakTags::replace(text_, spare_, work);
    LooseTags::drop(text_, spare_, work);
    Elements::drop(text_, spare_, work);
    if (text_.find('&') != npos) {
      spare_.clear();
      append_unescaped(text_, Words::unicode14(), spare_);
      text_.swap(spare_);
    }
    Placeholders::replace(text_, spare_, work);
    Typography::apply(text_, spare_);
    escape();
  }

  void drop_tables() {
    if (find_mark(text_, "{|", 0) == npos) return;
    const std::vector<Span> cuts = cut_ranges(text_, LiteralMark("{|"), LiteralMark("|}"));
    if (cuts.empty()) return;
    drop_ranges(text_, cuts, spare_);
    text_.swap(spare_);
  }

  void replace_links(Work& work) {
    // The package uses two NUL characters as the mark for a set-aside opener.
    if (find_mark(text_, std::string_view("\0\0", 2), 0) != npos) throw Unknown("two NUL characters");
    spare_.clear();
    if (ExternalLinks::replace(text_, spare_)) text_.swap(spare_);
    if (find_mark(text_, "[[[", 0) != npos) {
      spare_.clear();
      if (drop_extra_brackets(text_, spare_, work)) text_.swap(spare_);
    }
    if (find_mark(text_, "[[", 0) == npos) return;
    spare_.clear();
    if (links_.replace(text_, spare_, work)) text_.swap(spare_);
  }

  // Drops behaviour switches such as __NOTOC__.
  void drop_switches() {
    constexpr std::string_view kNames[] = {
        "NOTOC", "FORCETOC", "TOC", "NEWSECTIONLINK", "NONEWSECTIONLINK", "NOGALLERY", "HIDDENCAT", "NOCONTENTCONVERT",
        "NOCC", "NOTITLECONVERT", "NOTC", "START", "END", "INDEX", "NOINDEX", "STATICREDIRECT", "DISAMBIG",
        "NOEDITSECTION"};
    const auto match = [&](size_t pos) {
      for (std::string_view name : kNames)
        if (starts_with(text_, pos, name) && starts_with(text_, pos + name.size(), "__")) return pos + name.size() + 2;
      return npos;
    };
    size_t behind = 0;
    for (size_t at = find_mark(text_, "__", 0); at != npos; at = find_mark(text_, "__", at)) {
      const size_t end = match(at + 2);
      if (end == npos) {
        ++at;
        continue;
      }
      if (behind == 0) spare_.clear();
      spare_.append(text_, behind, at - behind);
      behind = at = end;
    }
    if (behind == 0) return;
    spare_.append(text_, behind, npos);
    text_.swap(spare_);
  }

  void escape() {
    size_t behind = 0, at = find_any<'&', '<', '>'>(text_, 0);
    if (at == npos) return;
    spare_.clear();
    for (; at != npos; at = find_any<'&', '<', '>'>(text_, behind)) {
      spare_.append(text_, behind, at - behind).append(text_[at] == '&' ? "&amp;" : text_[at] == '<' ? "&lt;" : "&gt;");
      behind = at + 1;
    }
    spare_.append(text_, behind, npos);
    text_.swap(spare_);
  }

  const Site& site_;
  CallMemo& memo_;
  InternalLinks links_;
  std::string text_, spare_;
};

}  // namespace bertdata::wiki::wikiextractor
