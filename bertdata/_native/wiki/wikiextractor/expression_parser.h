// The grammar of #expr: reads and evaluates an expression in one pass.
#pragma once

#include <string>
#include <string_view>

#include "wiki/wikiextractor/expression.h"
#include "wiki/wikiextractor/number_literal.h"
#include "wiki/work.h"

namespace bertdata::wiki::wikiextractor {

// The expression as Python would read it: "=" alone doubled, the words mod and div as operators. Round is
// one of ours, the byte 1.
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
    out += text[pos] == '\1' ? '?' : text[pos];  // neither can be in an expression
    if (alone) out += '=';
    ++pos;
  }
  return out;
}

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  // Throws BadExpression, Unknown, or LimitReached.
  Number evaluate() {
    try {
      skip();
      const Number value = disjunction();
      if (pos_ < text_.size()) fail();
      if (!refusal_.empty()) throw LimitReached(refusal_);
      return value;
    } catch (const BadExpression&) {
      // What Python does not evaluate behind "or" and "and" may be anything that it can read.
      if (has_skipped_) throw Unknown("an #expr that is not evaluated to its end");
      throw;
    }
  }

 private:
  [[noreturn]] static void fail() { throw BadExpression(); }

  struct Nested {
    explicit Nested(int& depth) : depth(depth) {
      if (++depth > kMostNestedOperators) throw Unknown("a deeply nested #expr");
    }
    ~Nested() { --depth; }
    int& depth;
  };

  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  bool at(std::string_view mark) const { return starts_with(text_, pos_, mark); }

  // Passes spaces and comments. Lines may end within brackets only.
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
  void other(char c) {
    const bool comment_at_end = c == '#' && text_.find_first_of("\n\r", pos_) == npos;
    if (!comment_at_end && c != '\n') throw Unknown("comments or lines in #expr");
    if (comment_at_end || only_comments_from(pos_)) pos_ = text_.size();
    // Else the expression ends at the line's end, which is an error.
  }
  // Whether all that follows is empty lines and comments, behind which an expression may end.
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

  // The first value that is true, else 0.
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

  // The last value if all are true, else 0.
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
    if (take_comparison(how)) fail();  // one at a time
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

  // The function's value. Of an expression with one that is too large nothing more is evaluated, but it is read
  // on: Python evaluates none that it cannot read.
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

// Value of #expr, kErrorSpan for an error. `truth` tells whether it counts as true (#ifexpr).
inline std::string evaluate_expression(std::string_view formula, bool* truth = nullptr) {
  const std::string text = to_python(strip(formula));
  try {
    if (text.find('\0') != npos) throw BadExpression();  // of a comment too
    const Number value = ExpressionParser(strip(text)).evaluate();
    if (truth) *truth = value.truth();
    return value.text();
  } catch (const BadExpression&) {
    return std::string(kErrorSpan);
  }
}

}  // namespace bertdata::wiki::wikiextractor
