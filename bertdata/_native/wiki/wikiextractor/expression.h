// Arithmetic of #expr as wikiextractor 3.1.0 evaluates it, with Python's integers and floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wiki/wikiextractor/limits.h"
#include "wiki/wikiextractor/numbers.h"

namespace bertdata::wiki::wikiextractor {

// The expression is an error. The error's text is not shown.
struct BadExpression {};

// A value is too large to compute. The text completes the sentence "page X: ...".
struct TooLarge {
  std::string text;
};

constexpr std::string_view kErrorSpan = "<span class=\"error\"></span>";

// A value: an integer or a float.
struct Number {
  bool is_float = false;
  int64_t integer = 0;
  double real = 0;

  static Number of(int64_t value) { return {false, value, 0}; }
  static Number of_float(double value) { return {true, 0, value}; }
  bool truth() const { return is_float ? real != 0 : integer != 0; }
  double as_float() const { return is_float ? real : static_cast<double>(integer); }
  std::string text() const { return is_float ? print_float(real) : std::to_string(integer); }
};

inline int64_t checked(bool overflowed, int64_t value) {
  if (overflowed) throw Unknown("an integer beyond 64 bits in #expr");
  return value;
}

// Converts to float. Throws Unknown for integers beyond 2**53, where the float would differ from the integer.
inline double exact_float(const Number& number) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (!number.is_float && (number.integer > kExact || number.integer < -kExact))
    throw Unknown("an integer beyond 53 bits among floats in #expr");
  return number.as_float();
}

inline Number add(const Number& a, const Number& b) {
  int64_t out;
  if (a.is_float || b.is_float) return Number::of_float(a.as_float() + b.as_float());
  const bool over = __builtin_add_overflow(a.integer, b.integer, &out);
  return Number::of(checked(over, out));
}

inline Number subtract(const Number& a, const Number& b) {
  int64_t out;
  if (a.is_float || b.is_float) return Number::of_float(a.as_float() - b.as_float());
  const bool over = __builtin_sub_overflow(a.integer, b.integer, &out);
  return Number::of(checked(over, out));
}

inline Number multiply(const Number& a, const Number& b) {
  int64_t out;
  if (a.is_float || b.is_float) return Number::of_float(a.as_float() * b.as_float());
  const bool over = __builtin_mul_overflow(a.integer, b.integer, &out);
  return Number::of(checked(over, out));
}

inline Number divide(const Number& a, const Number& b) {
  if (!b.truth()) throw BadExpression();
  return Number::of_float(exact_float(a) / exact_float(b));
}

inline Number modulo(const Number& a, const Number& b) {
  if (!b.truth()) throw BadExpression();
  if (!a.is_float && !b.is_float) {
    if (b.integer == -1) return Number::of(0);
    const int64_t left = a.integer % b.integer;
    return Number::of(left != 0 && (left < 0) != (b.integer < 0) ? left + b.integer : left);
  }
  const double x = a.as_float(), y = b.as_float();
  double left = std::fmod(x, y);
  if (left != 0) {
    if ((y < 0) != (left < 0)) left += y;
  } else {
    left = std::copysign(0.0, y);
  }
  return Number::of_float(left);
}

inline Number negate(const Number& a) {
  return a.is_float ? Number::of_float(-a.real) : subtract(Number::of(0), a);
}

inline Number power_of_floats(double base, double exponent) {
  if (base == 0 && exponent < 0) throw BadExpression();
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent))
    throw Unknown("a complex number in #expr");
  const double out = std::pow(base, exponent);
  if (std::isinf(out) && std::isfinite(base) && std::isfinite(exponent)) throw BadExpression();
  return Number::of_float(out);
}

inline Number power(const Number& a, const Number& b) {
  if (a.is_float || b.is_float || b.integer < 0) return power_of_floats(exact_float(a), exact_float(b));
  if (a.integer == 0 || a.integer == 1) return Number::of(b.integer == 0 ? 1 : a.integer);
  if (a.integer == -1) return Number::of(b.integer % 2 ? -1 : 1);
  if (static_cast<double>(b.integer) * std::log10(std::fabs(static_cast<double>(a.integer))) > kMostPowerDigits)
    throw TooLarge{"asks #expr for a power of more than " + std::to_string(kMostPowerDigits) + " digits"};
  if (b.integer > 64) throw Unknown("an integer beyond 64 bits in #expr");
  Number out = Number::of(1);
  for (int64_t i = 0; i < b.integer; ++i) out = multiply(out, a);
  return out;
}

// Returns Python's trunc(a).
inline int64_t truncate(const Number& a) {
  if (!a.is_float) return a.integer;
  if (!std::isfinite(a.real)) throw BadExpression();
  if (std::fabs(a.real) >= 9.2e18) throw Unknown("an integer beyond 64 bits in #expr");
  return static_cast<int64_t>(a.real);
}

// Rounds a number's decimal digits after the first `keep` digits, half to even. grown: whether the result has a digit
// more.
// digits "9951", keep 2 -> "100", grown
inline std::string round_digits(const std::string& digits, size_t keep, bool& grown) {
  std::string kept = digits.substr(0, keep);
  const char next = keep < digits.size() ? digits[keep] : '0';
  const bool more = keep < digits.size() && digits.find_first_not_of('0', keep + 1) != npos;
  const bool odd = !kept.empty() && (kept.back() - '0') % 2;
  grown = false;
  if (next < '5' || (next == '5' && !more && !odd)) return kept;
  for (size_t i = kept.size(); i-- > 0;) {
    if (kept[i] != '9') {
      ++kept[i];
      return kept;
    }
    kept[i] = '0';
  }
  grown = true;
  return "1" + kept;
}

inline Number round_float(double value, int64_t places) {
  if (!std::isfinite(value) || places > 323) return Number::of_float(value);
  if (places < -308) return Number::of_float(0.0 * value);
  std::string digits = exact_digits(std::fabs(value), 1080);
  const size_t point = digits.find('.');
  digits.erase(point, 1);
  const int64_t keep = static_cast<int64_t>(point) + places;
  if (keep < 0) return Number::of_float(std::copysign(0.0, value));
  bool grown;
  const std::string kept = round_digits(digits, static_cast<size_t>(keep), grown);
  const std::string text = (kept.empty() ? "0" : kept) + "e" + std::to_string(-places);
  const std::optional<double> rounded = read_decimal(text);
  if (!rounded || std::isinf(*rounded)) throw BadExpression();
  return Number::of_float(std::copysign(*rounded, value));
}

[[noreturn]] inline void refuse_places() {
  throw TooLarge{"asks #expr to round to more than " + std::to_string(kMostPlaces) + " places"};
}

inline Number round_integer(int64_t value, int64_t places) {
  if (places >= 0) return Number::of(value);
  if (places < -kMostPlaces) refuse_places();
  const bool negative = value < 0;
  const std::string digits = std::to_string(value).substr(negative);
  const int64_t keep = static_cast<int64_t>(digits.size()) + places;
  if (keep < 0) return Number::of(0);
  bool grown;
  std::string kept = round_digits(digits, static_cast<size_t>(keep), grown);
  if (kept.empty()) return Number::of(0);
  kept.append(static_cast<size_t>(-places), '0');
  int64_t out = 0;
  const auto [end, fault] = std::from_chars(kept.data(), kept.data() + kept.size(), out);
  return Number::of(checked(fault != std::errc(), negative ? -out : out));
}

inline Number round_number(const Number& a, const Number& b) {
  if (b.is_float && std::isfinite(b.real) && !a.is_float && b.real <= -(kMostPlaces + 1.0)) refuse_places();
  int64_t places;
  if (b.is_float && std::isfinite(b.real) && std::fabs(b.real) >= 9e18)
    places = b.real < 0 ? -(int64_t{1} << 62) : int64_t{1} << 62;
  else
    places = truncate(b);
  return a.is_float ? round_float(a.real, places) : round_integer(a.integer, places);
}

enum class Comparison { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

inline Number compare(const Number& a, const Number& b, Comparison how) {
  const auto answer = [how](auto x, auto y) {
    switch (how) {
      case Comparison::kEqual: return x == y;
      case Comparison::kUnequal: return x != y;
      case Comparison::kLess: return x < y;
      case Comparison::kLessOrEqual: return x <= y;
      case Comparison::kGreater: return x > y;
      case Comparison::kGreaterOrEqual: return x >= y;
    }
    return false;
  };
  const bool mixed = a.is_float || b.is_float;
  return Number::of(mixed ? answer(exact_float(a), exact_float(b)) : answer(a.integer, b.integer));
}

}  // namespace bertdata::wiki::wikiextractor
