// The functions of {{#invoke:...}}: those of the modules String, Roman and If empty.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wiki/mlperf/arguments.h"
#include "wiki/mlperf/numbers.h"
#include "wiki/mlperf/python_text.h"
#include "wiki/mlperf/site.h"
#include "wiki/work.h"

namespace bertdata::wiki::mlperf {

// Reads arguments one after another: by name, else the next unnamed argument, else empty.
class Taken {
 public:
  explicit Taken(const Arguments& arguments) : arguments_(arguments) {}

  std::string_view text(std::string_view name) {
    if (const std::string* value = arguments_.find(name)) return *value;
    const std::string* value = arguments_.find(std::to_string(++unnamed_));
    return value ? std::string_view(*value) : std::string_view();
  }

 private:
  const Arguments& arguments_;
  size_t unnamed_ = 0;
};

// Returns an integer argument, the default if the text is empty, or nullopt if it is no integer.
inline std::optional<int64_t> integer_or(std::string_view text, int64_t otherwise) {
  if (text.empty()) return otherwise;
  const auto digits = read_integer(text);
  if (!digits) return std::nullopt;
  return clamp_integer(*digits);
}

// Returns an integer argument after putting a 0 before it, so that an empty text is 0, as in the original.
inline std::optional<int64_t> integer_after_zero(std::string_view text) {
  return integer_or("0" + std::string(text), 0);
}

// The functions of Module:String. They return an empty text for bad arguments.
class StringModule {
 public:
  StringModule(const Arguments& arguments, const Compute& compute, Work& work)
      : taken_(arguments), compute_(compute), work_(work) {}

  std::string run(std::string_view function) {
    if (function == "len") return std::to_string(count_characters(taken_.text("s")));
    if (function == "sub") return sub();
    if (function == "sublength") return sublength();
    if (function == "pos") return pos();
    if (function == "find") return find();
    if (function == "replace") return replace();
    return {};
  }

 private:
  std::string sub() {
    const std::string_view s = taken_.text("s");
    auto i = integer_or(taken_.text("i"), 1), j = integer_or(taken_.text("j"), -1);
    if (!i || !j) return {};
    if (*i > 0) *i -= 1;
    if (*j < 0) *j += 1;
    return std::string(slice(s, *i, *j == 0 ? kHuge : *j));
  }

  std::string sublength() {
    const std::string_view s = taken_.text("s");
    const auto i = integer_or(taken_.text("i"), 1), length = integer_or(taken_.text("len"), 1);
    if (!i || !length) return {};
    return std::string(slice(s, *i - 1, *i - 1 + *length));
  }

  std::string pos() {
    const std::string_view target = taken_.text("target");
    const auto at = integer_or(taken_.text("pos"), 1);
    if (!at) return {};
    const auto length = static_cast<int64_t>(count_characters(target));
    int64_t index = *at > 0 ? *at - 1 : *at;
    if (index < 0) index += length;
    return index < 0 || index >= length ? std::string() : std::string(slice(target, index, index + 1));
  }

  std::string find() {
    const std::string_view source = taken_.text("source"), target = taken_.text("target");
    const auto start = integer_after_zero(taken_.text("start")), plain = integer_after_zero(taken_.text("plain"));
    if (source.empty() || target.empty()) return "0";
    if (!start || !plain) return {};
    // Patterns need Lua's or Python's regular expressions, so Python computes them.
    if (*plain == 0) return compute_("find", {std::string(source), std::string(target)});
    const size_t from = byte_offset(source, *start - 1);
    const size_t at = from == npos ? npos : source.find(target, from);
    return std::to_string(at == npos ? 0 : count_characters(source.substr(0, at)) + 1);
  }

  std::string replace() {
    const std::string_view source = taken_.text("source"), pattern = taken_.text("pattern");
    const std::string_view with = taken_.text("replace"), count = taken_.text("count");
    const auto plain = integer_or(taken_.text("plain"), 1);
    const auto digits = count.empty() ? std::string("0") : read_integer(count);
    if (!plain || !digits) return {};
    if (*plain == 0)
      return compute_("replace", {std::string(source), std::string(pattern), std::string(with), *digits});
    if (!fits_count(*digits)) return {};
    const int64_t most = clamp_integer(*digits);
    return replaced(source, pattern, with, most <= 0 ? kHuge : most, work_);
  }

  Taken taken_;
  const Compute& compute_;
  Work& work_;
};

// Returns the integer part of a number as a Roman numeral: empty for 0, `otherwise` outside 0 to 4999.
inline std::string roman(std::string_view text, std::string_view otherwise) {
  const auto value = read_float(text);
  if (!value) return {};
  const double whole = std::trunc(*value);
  if (whole < 0 || whole > 4999) return std::string(otherwise);
  static constexpr struct { int value; const char* numeral; } kNumerals[] = {
      {1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"},
      {40, "XL"},  {10, "X"},   {9, "IX"},  {5, "V"},    {4, "IV"},  {1, "I"}};
  std::string out;
  int left = static_cast<int>(whole);
  for (const auto& [step, numeral] : kNumerals)
    for (; left >= step; left -= step) out += numeral;
  return out;
}

// Returns the value of a module's function, empty if it is unknown.
inline std::string run_module(std::string_view module, std::string_view function, const Arguments& arguments,
                              const Compute& compute, Work& work) {
  if (module == "String") return StringModule(arguments, compute, work).run(function);
  if (function != "main") return {};
  if (module == "If empty") return representation(arguments.items(), work);
  if (module != "Roman" && module != "Numero romano") return {};
  const std::string *number = arguments.find("1"), *otherwise = arguments.find("2");
  return roman(number ? *number : "", otherwise ? std::string_view(*otherwise) : "N/A");
}

}  // namespace bertdata::wiki::mlperf
