// Limits of what the kernel reproduces.
#pragma once

#include <stdexcept>

namespace bertdata::wiki::wikiextractor {

// A construct whose result the kernel does not know; the text names it. Its page goes to the package.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Names of calls, branches and arguments within each other: each takes at most three of the 1000 frames
// that Python allows, and the package's answer to one too many depends on where it strikes.
constexpr int kMostNestedTexts = 250;
// Operators and brackets of one #expr within each other.
constexpr int kMostNestedOperators = 80;
// Templates within templates; a text this deep is empty.
constexpr size_t kMostNestedTemplates = 30;
// Names and defaults of arguments within each other; what is deeper is empty.
constexpr int kMostNestedArguments = 16;

// Bytes of work that a byte costs where every few bytes stop a search.
constexpr unsigned kScanCost = 4;

}  // namespace bertdata::wiki::wikiextractor
