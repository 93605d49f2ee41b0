// Parser functions.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wiki/mlperf/case_mapping.h"
#include "wiki/mlperf/error_mark.h"
#include "wiki/mlperf/expansion.h"
#include "wiki/mlperf/modules.h"
#include "wiki/mlperf/numbers.h"

namespace bertdata::wiki::mlperf {

// The functions that yield something. All other functions, known or not, yield nothing.
enum class Function { kUnknown, kIf, kIfeq, kIferror, kSwitch, kIfexist, kExpr, kLc, kUc, kLcfirst, kUcfirst,
                      kUrlencode, kInt, kInvoke };

inline Function find_function(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Function>, 13> kFunctions = {{
      {"#if", Function::kIf},
      {"#ifeq", Function::kIfeq},
      {"#iferror", Function::kIferror},
      {"#switch", Function::kSwitch},
      {"#ifexist", Function::kIfexist},
      {"#expr", Function::kExpr},
      {"lc", Function::kLc},
      {"uc", Function::kUc},
      {"lcfirst", Function::kLcfirst},
      {"ucfirst", Function::kUcfirst},
      {"urlencode", Function::kUrlencode},
      {"int", Function::kInt},
      {"#invoke", Function::kInvoke},
  }};
  if (name.size() > 16) return Function::kUnknown;
  const std::string lowered = lower_case(name);
  for (const auto& [known, function] : kFunctions)
    if (known == lowered) return function;
  return Function::kUnknown;
}

// Returns percent-encoded UTF-8. A surrogate has no UTF-8, and then the whole text yields nothing.
inline std::string url_encode(std::string_view text) {
  constexpr std::string_view kPlain = "_.-~/", kDigits = "0123456789ABCDEF";
  std::string out;
  if (has_surrogate(text)) return out;
  for (char byte : text) {
    const char lowered = lower_ascii(byte);
    if ((lowered >= 'a' && lowered <= 'z') || (byte >= '0' && byte <= '9') || kPlain.find(byte) != npos) {
      out += byte;
    } else {
      const auto value = static_cast<uint8_t>(byte);
      out += {'%', kDigits[value >> 4], kDigits[value & 15]};
    }
  }
  return out;
}

// A call of a parser function. Argument 0 is expanded and stripped, the other arguments are as written.
class ParserFunctions {
 public:
  ParserFunctions(Expansion& expansion, const std::vector<std::string_view>& arguments)
      : expansion_(expansion), arguments_(arguments), first_(arguments[0]) {}

  void append(Function function, std::string& out) {
    switch (function) {
      case Function::kUnknown: return;
      case Function::kIf: return append_if(out);
      case Function::kIfeq: return append_ifeq(out);
      case Function::kIferror: return append_iferror(out);
      case Function::kSwitch: return append_switch(out);
      case Function::kIfexist:
        if (arguments_.size() == 3) expansion_.expand(arguments_[2], out);
        return;
      case Function::kExpr:
        if (arguments_.size() == 1) out += expansion_.computed("expr", {expansion_.expanded(first_)});
        return;
      case Function::kLc: out += lower_case(first_); return;
      case Function::kUc: out += upper_case(first_); return;
      case Function::kLcfirst: out += lower_first(first_); return;
      case Function::kUcfirst: out += upper_first(first_); return;
      case Function::kUrlencode: out += url_encode(first_); return;
      case Function::kInt: out += read_integer(first_).value_or(""); return;
      case Function::kInvoke: out += invoke(); return;
    }
  }

 private:
  // Appends an argument, stripped and expanded, or nothing if it is missing.
  void evaluate(size_t i, std::string& out) {
    if (i < arguments_.size()) expansion_.expand(strip(arguments_[i]), out);
  }

  void append_if(std::string& out) { evaluate(first_.empty() ? 2 : 1, out); }

  void append_ifeq(std::string& out) {
    if (arguments_.size() < 3) return;
    const std::string_view other = strip(arguments_[1]);
    if (!other.empty()) evaluate(first_ == other ? 2 : 3, out);
  }

  void append_iferror(std::string& out) {
    if (begins_with_error(first_))
      evaluate(1, out);
    else if (arguments_.size() > 2)
      evaluate(2, out);
    else
      out += first_;
  }

  void append_switch(std::string& out) {
    std::string kept;
    // "a | b = x": a case without "=" falls through to the next case that has a value.
    bool matched = false;
    for (size_t i = 1; i < arguments_.size(); ++i) {
      const std::string_view argument = arguments_[i];
      const size_t equals = argument.find('=');
      const std::string left = expansion_.expanded(strip(argument.substr(0, equals)));
      if (equals == npos) {
        matched = matched || left == first_;
        continue;
      }
      const Limits::Waiting waiting(expansion_.limits, left.size() + kept.size());
      std::string right = expansion_.expanded(strip(argument.substr(equals + 1)));
      if (matched || is_piece(left)) {
        out += right;
        return;
      }
      if (left == "#default") kept = std::move(right);
    }
    out += kept;
  }

  // Returns whether the first argument is one of the pieces between the bars of the text.
  bool is_piece(std::string_view text) const {
    while (true) {
      const size_t bar = text.find('|');
      if (strip(text.substr(0, bar)) == first_) return true;
      if (bar == npos) return false;
      text.remove_prefix(bar + 1);
    }
  }

  // Without arguments, the function uses those of the nearest caller that is named like the module.
  std::string invoke() {
    if (arguments_.size() < 2) return {};
    const std::string_view module = first_, function = strip(arguments_[1]);
    const Arguments own = expansion_.read_arguments(arguments_, 2, false);
    const Arguments* given = arguments_.size() > 2 ? &own : nullptr;
    for (const auto* caller = expansion_.caller(); caller && !given; caller = caller->outer)
      if (caller->name == module) given = &caller->arguments;
    if (!given) return {};
    const auto compute = [this](const char* name, const std::vector<std::string>& arguments) {
      return expansion_.computed(name, arguments);
    };
    return run_module(module, function, *given, compute, expansion_.limits.work);
  }

  Expansion& expansion_;
  const std::vector<std::string_view>& arguments_;
  const std::string_view first_;
};

}  // namespace bertdata::wiki::mlperf
