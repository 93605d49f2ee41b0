// Turns blocks of dump pages into articles or template definitions, as the Python package wikiextractor 3.1.0 does.
// "The package" in these headers is that package.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "wiki/wikiextractor/article.h"
#include "wiki/wikiextractor/definitions.h"
#include "wiki/wikiextractor/page.h"
#include "wiki/wikiextractor/site.h"

namespace bertdata::wiki::wikiextractor {

struct ExtractorSettings {
  Site site;
  std::unordered_set<std::string> skip_pages;  // page ids
  uint64_t max_page_bytes;
  uint64_t max_work;  // bytes of work allowed for a page
};

// What happened to a page: an article of `size` bytes, or the reason why there is none. begin, end: range of the page
// in the block.
struct Outcome {
  std::string reason, detail;
  uint64_t size, begin, end;
};

// The id of a page, if there is one.
using Id = std::optional<std::string>;

// The articles of a block.
struct Articles {
  std::string text;
  std::vector<Outcome> outcomes;
  Id first_id, last_id;  // of the pages that could be articles
};

// The definitions of a block. pages: number of template pages. left_out: ids of pages left out by --skip-page.
struct Definitions {
  std::vector<Definition> found;
  uint64_t pages = 0;
  std::vector<std::string> left_out;
};

// Extracts articles. Threads share it: it is immutable except for the memos, and each call takes its own memo.
class Extractor {
 public:
  explicit Extractor(ExtractorSettings settings) : settings_(std::move(settings)) {}

  // Extracts the block's articles. last_id: id of the last page before the block that could be an article.
  Articles extract(std::string_view data, Id last_id) const {
    Articles articles;
    articles.last_id = std::move(last_id);
    articles.text.reserve(data.size() / 2);
    std::unique_ptr<CallMemo> memo = memos_.take();
    Renderer renderer(settings_.site, *memo);
    PageSplitter pages(data);
    std::string joined;
    while (const std::optional<RawPage> raw = pages.next()) {
      const size_t before = articles.text.size();
      Outcome outcome = take(data.substr(raw->begin, raw->end - raw->begin), raw->whole, renderer, joined, articles);
      outcome.size = articles.text.size() - before;
      outcome.begin = raw->begin;
      outcome.end = raw->end;
      articles.outcomes.push_back(std::move(outcome));
    }
    memos_.give(std::move(memo));
    return articles;
  }

  // Returns the definitions in the block, in order.
  Definitions definitions(std::string_view data) const {
    Definitions out;
    const std::string mark = "<title>" + settings_.site.template_namespace + ":";
    std::string joined;
    find_marked_pages(data, mark, [&](std::string_view page) {
      std::string id(find_page_id(page));
      if (settings_.skip_pages.count(id)) {
        out.left_out.push_back(std::move(id));
        return;
      }
      std::string_view text;
      if (!is_utf8(page) || !read_text(page, joined, text)) return;
      ++out.pages;
      const size_t title = page.find("<title>") + 7;
      const std::string_view name = page.substr(title, page.find('<', title) - title);
      if (const auto target = DefinitionText::find_target(text)) {
        out.found.push_back({true, std::string(name), std::string(*target)});
      } else if (std::string body = DefinitionText::included(text); !body.empty()) {
        out.found.push_back({false, std::string(name), std::move(body)});
      }
    });
    return out;
  }

 private:
  // Returns the page's outcome, without range and size. An article is appended to articles.text.
  Outcome take(std::string_view data, bool whole, Renderer& renderer, std::string& joined, Articles& articles) const {
    if (!settings_.skip_pages.empty()) {
      std::string id(find_page_id(data));
      if (settings_.skip_pages.count(id)) return {kLeftOut, std::move(id), 0, 0, 0};
    }
    if (data.size() > settings_.max_page_bytes) return {kTooLarge, "", 0, 0, 0};
    Page page = Page::read(data, whole, settings_.site.template_namespace, joined);
    if (!page.reason.empty()) return {std::move(page.reason), "", 0, 0, 0};
    const bool repeated = articles.last_id == page.id;
    if (!articles.first_id) articles.first_id = std::string(page.id);
    articles.last_id = std::string(page.id);
    if (repeated) return {kDuplicate, "", 0, 0, 0};
    return render(page, renderer, articles.text);
  }

  // Renders the page. On an exception the partial article is removed.
  Outcome render(const Page& page, Renderer& renderer, std::string& out) const {
    const size_t before = out.size();
    Work work(settings_.max_work);
    try {
      renderer.render(page.id, page.title, page.text, work, out);
      return {"", std::string(page.id), 0, 0, 0};
    } catch (const Unknown& unknown) {
      out.resize(before);
      return {kUnknown, unknown.what(), 0, 0, 0};
    } catch (const LimitReached& limit) {
      out.resize(before);
      return {kLimit, limit.what(), 0, 0, 0};
    }
  }

  ExtractorSettings settings_;
  mutable CallMemos memos_;
};

}  // namespace bertdata::wiki::wikiextractor
