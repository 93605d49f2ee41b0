// Parser of #expr that evaluates an expression while reading it.
#pragma once

#include <string>
#include <string_view>

#include "wiki/wikiextractor/expression.h"
#include "wiki/wikiextractor/number_literal.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// Converts the expression to Python's syntax, as the package does: a single "=" becomes "==", mod and div become
// operators. Round has no operator in Python and becomes the byte 1.
inline std::string to_python(std::string_view text) {
  const Words& words = Words::unicode14();
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    if (const size_t end = words.skip(text, pos); end > pos) {
      const std::string_view word = text.substr(pos, end - pos);
      out.append(word == "mod" ? "%" : word == "div" ? "/" : word == "round" ? "\1" : word);
      pos = end;
      continue;
    }
    const char before = pos ? text[pos - 1] : '\0', after = pos + 1 < text.size() ? text[pos + 1] : '\0';
    const bool alone = text[pos] == '=' && after != '=' && std::string_view("!<>=").find(before) == npos;
    out += text[pos] == '\1' ? '?' : text[pos];  // neither byte can occur in a valid expression
    if (alone) out += '=';
    ++pos;
  }
  return out;
}

// Recursive descent, with a function for each level of precedence: or, and, not, comparison, round, + -, * /, sign and
// **, and single values.
// The right side of "or" and "and" is read even if its value is not needed. While skipped_ is not 0, nothing is
// evaluated.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  // Evaluates the expression. Throws BadExpression, Unknown or LimitReached.
  Number evaluate() {
    try {
      skip();
      const Number value = disjunction();
      if (pos_ < text_.size()) fail();
      if (!refusal_.empty()) throw LimitReached(refusal_);
      return value;
    } catch (const BadExpression&) {
      // Python does not evaluate the right side of "or" and "and" if the left side decides. It may contain anything
      // that Python can parse, which is more than this parser knows, so the page is left to the package.
      if (has_skipped_) throw Unknown("an #expr that is not evaluated to its end");
      throw;
    }
  }

 private:
  [[noreturn]] static void fail() { throw BadExpression(); }

  // Limits the depth of the recursion.
  struct Nested {
    explicit Nested(int& depth) : depth(depth) {
      if (++depth > kMostNestedOperators) throw Unknown("a deeply nested #expr");
    }
    ~Nested() { --depth; }
    int& depth;
  };

  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  bool at(std::string_view mark) const { return starts_with(text_, pos_, mark); }

  // Skips spaces and comments. Line breaks are allowed only within brackets.
  void skip() {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == ' ' || c == '\t' || c == '\f' || (brackets_ && (c == '\n' || c == '\r')))
        ++pos_;
      else if (at("\\\n"))
        pos_ += 2;
      else if (c == '\\' || c == '#' || c == '\n' || c == '\r')
        return other(c);
      else
        return;
    }
  }
  // Handles a backslash, comment or line break.
  void other(char c) {
    const bool comment_at_end = c == '#' && text_.find_first_of("\n\r", pos_) == npos;
    if (!comment_at_end && c != '\n') throw Unknown("comments or lines in #expr");
    if (comment_at_end || only_comments_from(pos_)) pos_ = text_.size();
    // Otherwise the expression ends at the line break, which is an error.
  }
  // Returns whether only empty lines and comments follow. An expression may end before them.
  bool only_comments_from(size_t pos) const {
    while ((pos = text_.find_first_not_of(" \t\f\n\r", pos)) != npos) {
      if (text_[pos] == '\\') throw Unknown("comments or lines in #expr");
      if (text_[pos] != '#') return false;
      pos = text_.find_first_of("\n\r", pos);
    }
    return true;
  }

  bool take(std::string_view mark) {
    if (!at(mark)) return false;
    pos_ += mark.size();
    skip();
    return true;
  }
  bool take_word(std::string_view word) {
    const size_t end = pos_ + word.size();
    if (!at(word) || (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end])))) return false;
    return take(word);
  }

  // a or b: the first value that is true, else 0.
  Number disjunction() {
    Number left = conjunction();
    while (take_word("or")) {
      count_operator();
      const bool passed = left.truth();
      skip_if(passed);
      const Number right = conjunction();
      skipped_ -= passed;
      if (!passed) left = right.truth() ? right : Number::of(0);
    }
    return left;
  }

  // a and b: the last value if all are true, else 0.
  Number conjunction() {
    Number left = inversion();
    while (take_word("and")) {
      count_operator();
      const bool passed = !left.truth();
      skip_if(passed);
      const Number right = inversion();
      skipped_ -= passed;
      left = !passed && right.truth() ? right : Number::of(0);
    }
    return left;
  }

  Number inversion() {
    const Nested nested(depth_);
    if (take_word("not")) return Number::of(!inversion().truth());
    return comparison();
  }

  bool take_comparison(Comparison& how) {
    if (take("==")) how = Comparison::kEqual;
    else if (take("!=")) how = Comparison::kUnequal;
    else if (take("<=")) how = Comparison::kLessOrEqual;
    else if (take(">=")) how = Comparison::kGreaterOrEqual;
    else if (take("<")) how = Comparison::kLess;
    else if (take(">")) how = Comparison::kGreater;
    else return false;
    return true;
  }

  Number comparison() {
    const Number left = rounding();
    Comparison how;
    if (!take_comparison(how)) return left;
    const Number right = rounding();
    const Number value = live() ? compare(left, right, how) : left;
    if (take_comparison(how)) fail();  // comparisons cannot be chained
    return value;
  }

  Number rounding() {
    Number left = sum();
    while (take("\1")) {
      count_operator();
      const Number right = sum();
      if (live()) left = bounded(round_number, left, right);
    }
    return left;
  }

  Number sum() {
    Number left = product();
    while (peek() == '+' || peek() == '-') {
      const bool plus = peek() == '+';
      count_operator();
      ++pos_, skip();
      const Number right = product();
      if (live()) left = plus ? add(left, right) : subtract(left, right);
    }
    return left;
  }

  Number product() {
    Number left = factor();
    while ((peek() == '*' && !at("**")) || (peek() == '/' && !at("//")) || peek() == '%') {
      const char mark = peek();
      count_operator();
      ++pos_, skip();
      const Number right = factor();
      if (!live()) continue;
      left = mark == '*' ? multiply(left, right) : mark == '/' ? divide(left, right) : modulo(left, right);
    }
    return left;
  }

  Number factor() {
    const Nested nested(depth_);
    if (take("+")) return factor();
    if (take("-")) {
      const Number value = factor();
      return live() ? negate(value) : value;
    }
    const Number base = atom();
    if (!take("**")) return base;
    const Number exponent = factor();
    return live() ? bounded(power, base, exponent) : base;
  }

  // Returns the function's value. If it is too large, the rest of the expression is only parsed, not evaluated: Python
  // evaluates nothing if it cannot parse everything, so a syntax error counts before the size.
  Number bounded(Number (*function)(const Number&, const Number&), const Number& a, const Number& b) {
    try {
      return function(a, b);
    } catch (const TooLarge& large) {
      refusal_ = large.text;
      skip_if(true);
      return a;
    }
  }

  Number atom() {
    const Nested nested(depth_);
    const bool truncates = take_word("trunc");
    if (peek() == '(') {
      ++brackets_;
      ++pos_, skip();
      const Number value = disjunction();
      if (peek() != ')') {
        if (truncates && peek() == ',') throw Unknown("several arguments in #expr");
        fail();
      }
      --brackets_;
      ++pos_, skip();
      return truncates && live() ? Number::of(truncate(value)) : value;
    }
    if (truncates || (!is_digit(peek()) && peek() != '.')) fail();
    return number();
  }

  Number number() {
    const Number value = NumberLiteral(text_, pos_).read();
    skip();
    return value;
  }

  bool live() const { return skipped_ == 0; }
  void skip_if(bool passed) {
    skipped_ += passed;
    has_skipped_ |= passed;
  }
  void count_operator() {
    if (++operators_ > 2 * kMostNestedOperators) throw Unknown("an #expr of many operators");
  }

  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0, brackets_ = 0, skipped_ = 0, operators_ = 0;
  bool has_skipped_ = false;
  std::string refusal_;  // why the value is not computed
};

// Returns the value of #expr, or kErrorSpan for an error. Sets `truth` to whether the value counts as true (#ifexpr).
inline std::string evaluate_expression(std::string_view formula, bool* truth = nullptr) {
  const std::string text = to_python(strip(formula));
  try {
    if (text.find('\0') != npos) throw BadExpression();  // a NUL is an error even within a comment
    const Number value = ExpressionParser(strip(text)).evaluate();
    if (truth) *truth = value.truth();
    return value.text();
  } catch (const BadExpression&) {
    return std::string(kErrorSpan);
  }
}

}  // namespace bertdata::wiki::wikiextractor
