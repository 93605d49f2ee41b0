// Expands the templates, parser functions and magic words of a page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/wikiextractor/arguments.h"
#include "wiki/wikiextractor/branches.h"
#include "wiki/wikiextractor/call_memo.h"
#include "wiki/wikiextractor/limits.h"
#include "wiki/wikiextractor/nowiki.h"
#include "wiki/wikiextractor/site.h"
#include "wiki/wikiextractor/spans.h"
#include "wiki/wikiextractor/text_functions.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Expands the calls of a page as wikiextractor 3.1.0 does.
// Texts without calls are returned as they are, without a copy. spans_ and parts_ are shared stacks: each level of the
// recursion works on the items from its `base` on, and removes them when it is done.
class Expander {
 public:
  Expander(const Site& site, std::string_view title, CallMemo& memo, Work& work)
      : site_(site), title_(title), memo_(memo), work_(work) {}

  // Appends the expanded text of the page.
  void expand(std::string_view text, std::string& out) { expand(text, nullptr, out); }

 private:
  static constexpr size_t kCallCost = 1000;  // bytes of work that a call costs in addition to its texts

  // Counts nested texts during its lifetime.
  struct Nested {
    explicit Nested(int& depth) : depth(depth) {
      if (++depth > kMostNestedTexts) throw Unknown("calls nested too deeply");
    }
    ~Nested() { --depth; }
    int& depth;
  };

  // Throws Unknown unless the package would have this number of frames left.
  void need_frames(int frames) const {
    if (kTextFrames * depth_ + frames > kMostFrames) throw Unknown("calls nested too deeply");
  }

  // Appends the expanded text. frame: the template that the text belongs to, null for the page's own text.
  void expand(std::string_view text, const Frame* frame, std::string& out) {
    if (Frame::depth_of(frame) >= kMostNestedTemplates) return;
    work_.spend(text.size() + kCallCost);
    if (is_plain(text)) {
      out.append(text);
      return work_.grow(out.size());
    }
    const Nested nested(depth_);
    // <nowiki> elements are replaced by marks before expansion and put back after it.
    NowikiMask nowiki;
    std::string masked;
    if (!nowiki.mask(text, masked)) {
      expand_calls(text, frame, out);
      return;
    }
    std::string expanded;
    expand_calls(masked, frame, expanded);
    nowiki.unmask(expanded, work_);
    out.append(expanded);
    work_.grow(out.size());
  }

  // Appends the text with its outermost calls expanded, from left to right.
  void expand_calls(std::string_view text, const Frame* frame, std::string& out) {
    const size_t base = spans_.size();
    finder_.find<Kind::kCall>(text, spans_);
    size_t behind = 0;
    for (size_t i = base; i < spans_.size(); ++i) {
      const Span span = spans_[i];
      out.append(text, behind, span.begin - behind);
      if (!frame && depth_ == 1)
        call_of_page(inside(text, span, 2), out);
      else
        call(inside(text, span, 2), frame, out);
      behind = span.end;
    }
    spans_.resize(base);
    out.append(text, behind, npos);
    work_.grow(out.size());
  }

  // Returns whether the text is unchanged by expansion: it contains no call, and no NUL, which the marks for <nowiki>
  // contain.
  static bool is_plain(std::string_view text) {
    for (size_t at = find_any<'{', '\0'>(text, 0); at != npos; at = find_any<'{', '\0'>(text, at + 1))
      if (text[at] == '\0' || starts_with(text, at + 1, "{")) return false;
    return true;
  }

  // Returns the expanded text. The result is in `room`, or is the text itself if it has no calls.
  std::string_view expanded(std::string_view text, const Frame* frame, std::string& room) {
    if (is_plain(text) && Frame::depth_of(frame) < kMostNestedTemplates) return text;
    room.clear();
    expand(text, frame, room);
    return room;
  }

  // Expands a call in the page's own text. Its value is remembered unless it depends on the page.
  void call_of_page(std::string_view body, std::string& out) {
    if (const CallMemo::Value* value = memo_.find(body)) {
      work_.spend(value->work);
      out.append(value->text);
      return;
    }
    const uint64_t before = work_.spent();
    const size_t begin = out.size();
    names_page_ = false;
    call(body, nullptr, out);
    if (!names_page_) memo_.keep(body, std::string_view(out).substr(begin), work_.spent() - before);
  }

  // Appends the value of a call: a magic word, a parser function (name:...) or a template, tried in this order.
  // {{#if: {{{1|}}} | a | b}}: the parts are "#if: {{{1|}}} ", " a ", " b". The name is "#if", the first argument what
  // follows the colon.
  void call(std::string_view body, const Frame* frame, std::string& out) {
    work_.spend(body.size() + kCallCost);
    const size_t base = parts_.size();
    split_parts(body, finder_, spans_, parts_);
    std::string room;
    // Only the name is expanded here. The other parts are expanded where they are used.
    std::string_view name = expanded(strip(parts_[base]), frame, room);
    const bool substituted = drop_subst(name);
    const size_t colon = name.find(':');
    if (!append_magic_word(name, out)) {
      if (colon != npos && colon > 1 && !is_one_character(name.substr(0, colon)))
        call_function(name.substr(0, colon), strip(name.substr(colon + 1)), base, frame, out);
      else
        call_template(name, body, base, substituted, frame, out);
    }
    parts_.resize(base);
  }

  static bool is_one_character(std::string_view text) { return count_characters(text) == 1; }

  // Removes a leading subst: or safesubst:, once. Returns whether there was one.
  static bool drop_subst(std::string_view& name) {
    for (std::string_view word : {"subst:", "safesubst:"}) {
      const size_t end = match_name(name, 0, word);
      if (end == npos) continue;
      name.remove_prefix(end);
      return true;
    }
    return false;
  }

  bool append_magic_word(std::string_view name, std::string& out) {
    constexpr size_t kLongest = 12;  // FULLPAGENAME, CURRENTMONTH
    if (name.empty() || name.size() > kLongest) return false;
    if (name == "!") return out += '|', true;
    const auto is = [name](std::string_view word) {
      return name.size() == word.size() &&
             std::equal(name.begin(), name.end(), word.begin(), [](char a, char b) { return lower_ascii(a) == b; });
    };
    if (is("pagename") || is("fullpagename")) {
      names_page_ = true;
      out.append(title_);
    } else if (is("namespace")) {
      names_page_ = true;
      out.append(title_.substr(0, title_.find(':') == npos ? 0 : title_.find(':')));
    } else if (is("currentyear"))
      out.append(site_.year);
    else if (is("currentmonth"))
      out.append(site_.month);
    else if (is("currentday"))
      out.append(site_.day);
    else if (is("currenthour"))
      out.append("00");
    else if (is("currenttime"))
      out.append("00:00:00");
    else
      return false;
    return true;
  }

  // Appends the function's value, which is then expanded as a whole.
  void call_function(std::string_view name, std::string_view first, size_t base, const Frame* frame, std::string& out) {
    // Copy the parts, because nested calls append to parts_ and may move it.
    const std::vector<std::string_view> parts(parts_.begin() + static_cast<ptrdiff_t>(base) + 1, parts_.end());
    const Rest rest{parts.data(), parts.size()};
    if (name == "#expr" || name == "#ifexpr") need_frames(kExpressionFrames);
    std::string_view chosen;
    std::string room;
    if (choose_branch(name, first, rest, chosen, room)) {
      expand(chosen, frame, out);
      return;
    }
    const Result value = name == "#invoke" ? invoke(first, rest, frame) : call_text_function(name, first, rest, work_);
    if (!value) return;
    work_.spend(first.size() + value->size());
    expand(*value, frame, out);
  }

  // The only supported module, convert: returns the number and unit unchanged.
  static Result invoke(std::string_view module, Rest rest, const Frame* frame) {
    if (module != "convert" || strip(rest[0]) != "convert" || !frame) return std::nullopt;
    const std::string *number = frame->arguments->find("1"), *unit = frame->arguments->find("2");
    if (!number || !unit) return std::nullopt;
    return *number + " " + *unit;
  }

  // Returns the full title that a call's name refers to.
  std::string title_of(std::string_view name) const {
    if (name.empty()) return {};
    if (name[0] == ':') return upper_first(name.substr(1));
    std::string title = upper_first(name);
    const size_t colon = title.find(':');
    if (colon != npos && site_.namespaces.count(title.substr(0, colon))) return title;
    return site_.template_namespace + ":" + title;
  }

  void call_template(std::string_view name, std::string_view body, size_t base, bool substituted, const Frame* frame,
                     std::string& out) {
    std::string title = title_of(name);
    std::string_view text;
    if (title.empty() || !site_.find_template(title, text)) return;
    // The package parses the template's text before it reads the arguments, and can run out of frames there.
    need_frames(kArgumentFrames * memo_.nesting().of(text, work_));
    Arguments arguments;
    for (size_t i = base + 1; i < parts_.size(); ++i) {
      std::string room;
      const std::string_view part = parts_[i];
      arguments.add(substituted ? part : expanded(part, frame, room));
    }
    work_.spend(text.size() + kCallCost);
    // A template that calls itself with the same arguments would never end. The package leaves the call as text.
    if (Frame::repeats(frame, title, arguments)) {
      out.append("{{").append(body).append("}}");
      return;
    }
    const Frame own{title, &arguments, frame, Frame::depth_of(frame) + 1};
    if (own.depth >= kMostNestedTemplates) return;
    std::string room;
    expand(with_values(text, own, 0, room), &own, out);
  }

  // Appends the text with its {{{arguments}}} replaced by their values.
  void substitute(std::string_view text, const Frame& frame, int level, std::string& out) {
    if (level > kMostNestedArguments) return;
    const Nested nested(depth_);
    work_.spend(text.size() + kCallCost);
    const size_t base = spans_.size();
    finder_.find<Kind::kArgument>(text, spans_);
    size_t behind = 0;
    for (size_t i = base; i < spans_.size(); ++i) {
      const Span span = spans_[i];
      out.append(text, behind, span.begin - behind);
      append_argument(inside(text, span, 3), frame, level, out);
      behind = span.end;
    }
    spans_.resize(base);
    out.append(text, behind, npos);
    work_.grow(out.size());
  }

  // Appends the value of {{{name|default}}}: the argument's value if the call has it, else the expanded default.
  void append_argument(std::string_view body, const Frame& frame, int level, std::string& out) {
    const size_t base = parts_.size();
    split_parts(body, finder_, spans_, parts_);
    const bool has_default = parts_.size() > base + 1;
    const std::string_view first = parts_[base], other = has_default ? parts_[base + 1] : std::string_view();
    parts_.resize(base);
    std::string name_room, room;
    const std::string_view name = with_values(first, frame, level + 1, name_room);
    if (const std::string* value = frame.arguments->find(expanded(name, &frame, room))) {
      work_.spend(value->size());
      out.append(*value);
    } else if (has_default) {
      std::string text_room;
      expand(with_values(other, frame, level + 1, text_room), &frame, out);
    }
    work_.grow(out.size());
  }

  // Returns the text with its arguments replaced. The result is in `room`, or is the text itself if it has none.
  std::string_view with_values(std::string_view text, const Frame& frame, int level, std::string& room) {
    if (level <= kMostNestedArguments && find_mark(text, "{{{", 0) == npos) return text;
    substitute(text, frame, level, room);
    return room;
  }

  const Site& site_;
  std::string_view title_;
  CallMemo& memo_;
  Work& work_;
  SpanFinder finder_;
  std::vector<Span> spans_;                // of the texts that are being expanded, outermost first
  std::vector<std::string_view> parts_;    // of the calls that are being expanded, outermost first
  int depth_ = 0;
  bool names_page_ = false;  // the current call of the page has used the page's title
};

}  // namespace bertdata::wiki::wikiextractor
