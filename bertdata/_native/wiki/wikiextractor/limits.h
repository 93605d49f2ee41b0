// Limits within which the kernel reproduces the wikiextractor package.
#pragma once

#include <stdexcept>

namespace bertdata::wiki::wikiextractor {

// A construct whose result the kernel cannot reproduce. The text names it. The package then extracts the page.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Nesting depth of texts: names of calls, branches and arguments.
constexpr int kMostNestedTexts = 250;
// Number of Python's 1000 frames that the nesting of a page may use. The package's result beyond the limit depends on
// the function that exceeds it, and on the templates that were parsed for earlier pages.
constexpr int kMostFrames = 900;
// Most frames that the package uses for a text within a text, for an argument within an argument of a template that it
// parses, and for an #expr.
constexpr int kTextFrames = 3, kArgumentFrames = 5, kExpressionFrames = 330;
// Digits of a power in #expr, and places for rounding an integer. Beyond these the package takes minutes or hours.
constexpr int kMostPowerDigits = 5000, kMostPlaces = 100000;
// Nesting depth of operators and brackets in an #expr.
constexpr int kMostNestedOperators = 80;
// Nesting depth of templates. A text at this depth is empty.
constexpr size_t kMostNestedTemplates = 30;
// Nesting depth of names and defaults of arguments. Deeper texts are empty.
constexpr int kMostNestedArguments = 16;

// Cost of a byte in bytes of work if a search stops every few bytes.
constexpr unsigned kScanCost = 4;

}  // namespace bertdata::wiki::wikiextractor
