// Reads numbers in an expression with Python's syntax.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "wiki/wikiextractor/expression.h"

namespace bertdata::wiki::wikiextractor {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) {
  const char lower = lower_ascii(c);
  return (lower >= 'a' && lower <= 'z') || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}

// Reads the number at pos, which begins with a digit or a point, and moves pos past it. Throws BadExpression.
// Single underscores between digits are allowed. Integers other than zero must not have leading zeros.
class NumberLiteral {
 public:
  NumberLiteral(std::string_view text, size_t& pos) : text_(text), pos_(pos) {}

  Number read() {
    if (peek() == '0' && pos_ + 1 < text_.size() && std::string_view("xXoObB").find(text_[pos_ + 1]) != npos)
      return read_based();
    const std::string whole = run_of_digits();
    std::string digits = whole;
    bool is_float = false;
    if (peek() == '.') {
      is_float = true;
      digits += text_[pos_++];
      digits += run_of_digits();
      if (digits == ".") throw BadExpression();
    }
    is_float |= read_exponent(digits);
    check_end();
    if (is_float) {
      const auto value = read_decimal(digits);
      if (!value) throw BadExpression();
      return Number::of_float(*value);
    }
    const size_t first = whole.find_first_not_of('0');
    if (first == npos) return Number::of(0);
    if (first > 0) throw BadExpression();
    return integer(whole, 10);
  }

 private:
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  bool read_exponent(std::string& digits) {
    if (lower_ascii(peek()) != 'e') return false;
    size_t after = pos_ + 1;
    const bool minus = after < text_.size() && text_[after] == '-';
    if (after < text_.size() && (text_[after] == '-' || text_[after] == '+')) ++after;
    if (after >= text_.size() || !is_digit(text_[after])) return false;
    pos_ = after;
    digits.append(minus ? "e-" : "e").append(run_of_digits());
    return true;
  }

  // Reads an integer with a prefix such as 0x.
  Number read_based() {
    const char base = lower_ascii(text_[pos_ + 1]);
    const int size = base == 'x' ? 16 : base == 'o' ? 8 : 2;
    pos_ += 2;
    std::string digits;
    while (pos_ < text_.size()) {
      const char c = lower_ascii(text_[pos_]);
      const int value = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
      if (c == '_' && pos_ + 1 < text_.size() && text_[pos_ + 1] != '_') {
        ++pos_;
        continue;
      }
      if (value >= size) break;
      digits += c;
      ++pos_;
    }
    if (digits.empty() || text_[pos_ - 1] == '_' || is_digit(peek())) throw BadExpression();
    check_end();
    return integer(digits, size);
  }

  static Number integer(const std::string& digits, int base) {
    int64_t value = 0;
    const auto fault = std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec;
    return Number::of(checked(fault != std::errc(), value));
  }

  std::string run_of_digits() {
    std::string digits;
    while (is_digit(peek()) || (peek() == '_' && !digits.empty() && follows_digit())) {
      if (peek() != '_') digits += peek();
      ++pos_;
    }
    return digits;
  }
  bool follows_digit() const { return pos_ + 1 < text_.size() && is_digit(text_[pos_ + 1]); }

  // Only a keyword may follow directly after a number.
  void check_end() const {
    if (is_letter(peek()) && !starts_with(text_, pos_, "or") && !starts_with(text_, pos_, "and")) throw BadExpression();
  }

  std::string_view text_;
  size_t& pos_;
};

}  // namespace bertdata::wiki::wikiextractor
