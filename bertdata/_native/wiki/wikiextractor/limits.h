// Limits of what the kernel reproduces.
#pragma once

#include <stdexcept>

namespace bertdata::wiki::wikiextractor {

// A construct whose result the kernel does not know. The text names it. Its page goes to the package.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Names of calls, branches and arguments within each other.
constexpr int kMostNestedTexts = 250;
// Of the 1000 frames that Python allows, those that a page's own nesting may take: the package's answer to one
// too many depends on where it strikes, and on the templates that it parsed for the pages before.
constexpr int kMostFrames = 900;
// Frames that the package takes at most for a text within another, for an argument within another in a template
// that it parses, and for an #expr.
constexpr int kTextFrames = 3, kArgumentFrames = 5, kExpressionFrames = 330;
// Digits of a power in #expr, and places to which an integer is rounded: more take the package minutes or hours.
constexpr int kMostPowerDigits = 5000, kMostPlaces = 100000;
// Operators and brackets of one #expr within each other.
constexpr int kMostNestedOperators = 80;
// Templates within templates. A text this deep is empty.
constexpr size_t kMostNestedTemplates = 30;
// Names and defaults of arguments within each other. What is deeper is empty.
constexpr int kMostNestedArguments = 16;

// Bytes of work that a byte costs where every few bytes stop a search.
constexpr unsigned kScanCost = 4;

}  // namespace bertdata::wiki::wikiextractor
