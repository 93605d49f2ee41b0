// MLPerf's extractor: turns blocks of dump pages into articles or template definitions.
// Twin of bertdata/wiki/mlperf. "The original" in these headers is WikiExtractor at commit 3162bb6, which MLPerf pins.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "unicode/unicode.h"
#include "wiki/mlperf/article.h"
#include "wiki/mlperf/definitions.h"
#include "wiki/mlperf/page_reader.h"

namespace bertdata::wiki::mlperf {

// What happened to a page. The reasons are listed in wiki/pages.py and empty for an article. size: bytes of the
// article. begin, end: range of the page in the block.
struct Outcome {
  std::string reason, detail;
  size_t size, begin, end;
};

// Id of the first page in a block that is whole and no redirect.
struct FirstId {
  bool found = false;
  std::string id;
};

// The articles of a block.
struct Articles {
  std::string text;
  std::vector<Outcome> outcomes;
  FirstId first;
};

// A template definition.
struct Definition {
  std::string title, text;
};

// The definitions of a block. pages: number of template pages. left_out: ids of pages left out by --skip-page.
struct Definitions {
  std::vector<Definition> templates;
  size_t pages = 0;
  std::vector<std::string> left_out;
  FirstId first;
};

struct ExtractorSettings {
  Site site;
  Templates templates;
  std::unordered_set<std::string> skip_pages;
  uint64_t max_page_bytes, max_work;
  Compute compute;
};

// Namespace keys of templates and modules.
inline constexpr const char* kTemplateKeys[] = {"10", "828"};

// Extracts articles. It is immutable, so threads can share it.
class Extractor {
 public:
  explicit Extractor(ExtractorSettings settings) : settings_(std::move(settings)) {}

  // Extracts the block's articles. `state` is the reader's state at the start of the block, and is advanced to its
  // end.
  Articles extract(std::string_view data, ReaderState& state) const {
    Articles found;
    found.text.reserve(data.size() / 2);
    ArticleWriter writer(settings_.site, settings_.templates, settings_.compute);
    PageReader reader(data, state);
    for (ReadPage page; reader.next(page);) {
      note_first(page, found.first);
      Outcome outcome{check(data, page, state), "", 0, page.begin, page.end};
      if (outcome.reason.empty())
        write(writer, page, found.text, outcome);
      else if (is_left_out(page))
        outcome.detail = page.id;
      found.outcomes.push_back(std::move(outcome));
      leave(page, state);
    }
    return found;
  }

  // Returns the definitions in the block, in order.
  Definitions definitions(std::string_view data, ReaderState& state) const {
    Definitions found;
    PageReader reader(data, state);
    for (ReadPage page; reader.next(page); leave(page, state)) {
      note_first(page, found.first);
      if (!is_emitted(page, state) || (page.ns != kTemplateKeys[0] && page.ns != kTemplateKeys[1])) continue;
      if (is_left_out(page)) {
        found.left_out.emplace_back(page.id);
        continue;
      }
      ++found.pages;
      if (is_too_large(page) || !is_utf8(data, page) || !page.has_title) continue;
      std::string text = definition_text(page.text);
      if (!text.empty()) found.templates.push_back({std::string(page.title), std::move(text)});
    }
    return found;
  }

 private:
  // Returns whether the original would write this page: whole, no redirect, and not the same id as the page before.
  static bool is_emitted(const ReadPage& page, const ReaderState& state) {
    return page.whole && !page.redirect && !(state.has_last && state.last_id == page.id);
  }

  static void note_first(const ReadPage& page, FirstId& first) {
    if (!first.found && page.whole && !page.redirect) first = {true, std::string(page.id)};
  }

  bool is_left_out(const ReadPage& page) const {
    return !settings_.skip_pages.empty() && settings_.skip_pages.count(std::string(page.id));
  }

  bool is_too_large(const ReadPage& page) const { return page.end - page.begin > settings_.max_page_bytes; }

  static bool is_utf8(std::string_view text) {
    try {
      check_utf8(reinterpret_cast<const uint8_t*>(text.data()), text.size());
      return true;
    } catch (const InvalidUtf8&) {
      return false;
    }
  }

  static bool is_utf8(std::string_view data, const ReadPage& page) {
    return is_utf8(data.substr(page.begin, page.end - page.begin));
  }

  // Returns the reason why the page is not written, or an empty string.
  std::string check(std::string_view data, const ReadPage& page, const ReaderState& state) const {
    if (is_left_out(page)) return "left out by --skip-page";
    if (!page.whole) return "cut off";
    if (is_too_large(page)) return "too large";
    if (!is_utf8(data, page)) return "invalid UTF-8";
    if (page.redirect) return "redirect";
    if (!is_emitted(page, state)) return "same id as the article before";
    return page.ns == "0" ? "" : "namespace " + std::string(page.ns);
  }

  void write(ArticleWriter& writer, const ReadPage& page, std::string& out, Outcome& outcome) const {
    const size_t before = out.size();
    Work work(settings_.max_work);
    try {
      if (!page.has_title) throw ArticleFails("no title");
      if (page.id.empty()) throw ArticleFails("no id");
      // They can come from bytes before the page, which check() has not looked at.
      if (!is_utf8(page.id) || !is_utf8(page.title)) throw ArticleFails(kSurrogate);
      writer.append(page.id, page.title, page.text, work, out);
      outcome.size = out.size() - before;
      outcome.detail = page.id;
    } catch (const ArticleFails& error) {
      outcome.reason = "extraction failed";
      outcome.detail = error.what();
    } catch (const LimitReached& error) {
      outcome.reason = "limit";
      outcome.detail = error.what();
    }
    if (!outcome.size) out.resize(before);
  }

  // Updates the state after a page. A page that is written resets the namespace. Other pages leave it to the next
  // page, as in the original.
  static void leave(const ReadPage& page, ReaderState& state) {
    if (!is_emitted(page, state)) return;
    state.last_id = page.id;
    state.has_last = true;
    state.ns = "0";
  }

  ExtractorSettings settings_;
};

}  // namespace bertdata::wiki::mlperf
