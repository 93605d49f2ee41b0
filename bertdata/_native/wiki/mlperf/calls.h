// Calls of magic words, parser functions and templates: the recursive part of Expansion.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wiki/mlperf/parser_functions.h"

namespace bertdata::wiki::mlperf {

inline Arguments Expansion::read_arguments(const std::vector<std::string_view>& parts, size_t from, bool literal) {
  const Limits::Nesting nesting(limits, 1);
  Arguments arguments;
  for (size_t i = from; i < parts.size(); ++i) {
    // The arguments so far stay in memory while the next one is expanded, so they count against the page's limit.
    const Limits::Waiting waiting(limits, arguments.bytes());
    if (literal)
      arguments.add(parts[i]);
    else
      arguments.add(transformed(parts[i]));
  }
  return arguments;
}

// Returns the length of a leading "subst:" or "safesubst:", or 0.
inline size_t substitution_prefix(std::string_view name) {
  for (std::string_view prefix : {"subst:", "safesubst:"})
    if (const size_t end = match_name(name, 0, prefix); end != npos) return end;
  return 0;
}

// Appends the value of the call {{text}}: a magic word, a parser function (name:...) or a template, tried in this
// order.
inline void Expansion::call(std::string_view text, std::string& out) {
  const Limits::Nesting nesting(limits, 1);
  if (depth_ >= kMaxTemplateDepth) return;
  limits.work.spend(text.size() + kCallWork);
  // Only the name is expanded here. The other parts are expanded where they are used, so that branches that are not
  // taken cost nothing.
  std::string buffer;
  std::string_view name = expansion_of(strip(first_part(text)), buffer);
  const size_t prefix = substitution_prefix(name);
  name.remove_prefix(prefix);
  if (const auto value = words_.value(name)) {
    out += *value;
    return;
  }
  // A prefix of a single character is no function: "w:Page" is a page of another wiki.
  const size_t colon = name.find(':');
  if (colon != npos && colon > 1 && (colon > 4 || count_characters(name.substr(0, colon)) > 1))
    call_function(text, name, colon, out);
  else
    call_template(text, name, prefix > 0, out);
}

inline void Expansion::call_function(std::string_view text, std::string_view name, size_t colon, std::string& out) {
  const Function function = find_function(name.substr(0, colon));
  if (function == Function::kUnknown) return;
  std::vector<std::string_view> arguments = split_parts(text);
  arguments[0] = strip(name.substr(colon + 1));
  const size_t before = out.size();
  try {
    // A function that exceeds the recursion limit yields nothing, as in the original, where it catches the exception.
    const Limits::Nesting nesting(limits, kFunctionFrames);
    ParserFunctions(*this, arguments).append(function, out);
  } catch (const TooDeep&) {
    out.resize(before);
  }
}

// Appends the expansion of a template's body with the call's arguments filled in.
inline void Expansion::call_template(std::string_view text, std::string_view name, bool literal, std::string& out) {
  if (templates_.empty()) return;
  const std::string title = called_title(name, site_);
  std::string_view body;
  if (!templates_.find(title, body)) return;
  const Arguments arguments = read_arguments(split_parts(text), 1, literal);
  const Caller here{name, arguments, caller_};
  // Makes this call the current caller, and restores the caller before it on every way out.
  struct Entered {
    Expansion& expansion;
    explicit Entered(Expansion& of, const Caller& caller) : expansion(of) { expansion.caller_ = &caller, ++of.depth_; }
    ~Entered() { expansion.caller_ = expansion.caller_->outer, --expansion.depth_; }
  } entered(*this, here);
  const Limits::Waiting given(limits, arguments.bytes());
  std::string substituted;
  substitute(body, arguments, 0, substituted);
  const Limits::Waiting waiting(limits, substituted.size());
  transform(substituted, out);
}

// Appends the text with each {{{name|default}}} replaced by the argument's value, or by the default.
// Names and defaults can contain parameters and calls themselves, hence `resolve`.
inline void Expansion::substitute(std::string_view text, const Arguments& arguments, int level, std::string& out) {
  const Limits::Nesting nesting(limits, 1);
  if (level > kMaxArgumentLevel) return;
  spend_step(text);
  const auto resolve = [&](std::string_view part) {
    std::string substituted, value;
    substitute(part, arguments, level + 1, substituted);
    transform(substituted, value);
    return value;
  };
  size_t behind = 0;
  for (const Span& span : find_arguments(text)) {
    out.append(text, behind, span.begin - behind);
    behind = span.end;
    const Limits::Waiting waiting(limits, out.size());
    const std::vector<std::string_view> parts = split_parts(inside(text, span, 3));
    const bool is_plain_name = level < kMaxArgumentLevel && is_plain(parts[0], 1);
    if (is_plain_name) spend_step(parts[0]), spend_step(parts[0]);  // the same costs as in resolve()
    const std::string name = is_plain_name ? std::string(parts[0]) : resolve(parts[0]);
    if (const std::string* value = arguments.find(name)) {
      limits.work.spend(value->size());
      out += *value;
    } else if (parts.size() > 1) {
      out += resolve(parts[1]);
    }
    limits.work.grow(out.size());
  }
  out.append(text, behind, npos);
}

}  // namespace bertdata::wiki::mlperf
