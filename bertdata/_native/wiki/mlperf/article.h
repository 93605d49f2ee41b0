// Turns the wikitext of an article into the text that is written.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "wiki/entities.h"
#include "wiki/mlperf/calls.h"
#include "wiki/mlperf/external_links.h"
#include "wiki/mlperf/lines.h"
#include "wiki/mlperf/links.h"
#include "wiki/mlperf/placeholders.h"
#include "wiki/mlperf/quotes.h"
#include "wiki/mlperf/switches.h"
#include "wiki/mlperf/tags.h"
#include "wiki/mlperf/typography.h"

namespace bertdata::wiki::mlperf {

// The original program fails on this article, and it is lost.
struct ArticleFails : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr const char* kSurrogate = "a lone surrogate in its text";

// Cleans one article after another in buffers that it reuses.
class ArticleWriter {
 public:
  ArticleWriter(const Site& site, const Templates& templates, const Compute& compute)
      : site_(site), templates_(templates), compute_(compute) {}

  // Appends the article. Title and text are XML-escaped, as in the dump. Throws ArticleFails.
  void append(std::string_view id, std::string_view title, std::string_view text, Work& work, std::string& out) {
    text_.clear();
    try {
      Expansion(site_, templates_, compute_, title, work).transform(text, text_);
    } catch (const TooDeep& error) {
      throw ArticleFails(error.what());
    }
    clean(work);
    const size_t before = out.size();
    append_head(id, title, out);
    const size_t body = out.size();
    append_kept_lines(text_, out);
    if (has_surrogate(std::string_view(out).substr(body))) {
      out.resize(before);
      throw ArticleFails(kSurrogate);
    }
    out += "\n</doc>\n";
  }

 private:
  void append_head(std::string_view id, std::string_view title, std::string& out) const {
    for (std::string_view piece : {std::string_view("<doc id=\""), id, std::string_view("\" url=\""),
                                   std::string_view(site_.url_base), std::string_view("?curid="), id,
                                   std::string_view("\" title=\""), title, std::string_view("\">\n"), title,
                                   std::string_view("\n\n")})
      out += piece;
  }

  // The steps between expansion and lines, in the original's order. Each step works on the result of the one before,
  // so the order decides what the text becomes.
  void clean(Work& work) {
    work.spend(8 * text_.size());
    // Whatever is still in braces after expansion is dropped, then tables.
    cut("{{", "}}");
    cut("{|", "|}");
    clean_quotes(text_, spare_);
    replace_internal_links(text_, spare_);
    replace_external_links(text_, spare_);
    remove_switches(text_, spare_);
    spare_.clear();
    append_unescaped_but_code(text_, Words::unicode11(), spare_);
    text_.swap(spare_);
    const bool has_tags = text_.find('<') != npos;
    if (has_tags) {
      remove_tags(text_, spare_);
      remove_elements(text_, spare_, work);
    }
    spare_.clear();
    append_unescaped(text_, Words::unicode11(), spare_);
    text_.swap(spare_);
    insert_placeholders(text_, spare_, work);
    clean_typography(text_, spare_);
  }

  // Drops everything between the marks.
  void cut(std::string_view open, std::string_view close) {
    const auto cuts = cut_ranges(text_, LiteralMark(open), LiteralMark(close));
    if (cuts.empty()) return;
    drop_ranges(text_, cuts, spare_);
    text_.swap(spare_);
  }

  const Site& site_;
  const Templates& templates_;
  const Compute& compute_;
  std::string text_, spare_;
};

}  // namespace bertdata::wiki::mlperf
