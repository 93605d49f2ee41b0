"""The kernel that takes examples, under the undefined-behaviour sanitizer: columns without any items."""

from pathlib import Path

import pytest

from tests.support.sanitized import run_sanitized

PROGRAM = """
#include "examples/take.h"

int main() {
  const uint32_t ends[] = {0, 0};
  const int64_t order[] = {0, 1};
  const auto taken = bertdata::taken_ends(ends, 2, order, 2);
  return static_cast<int>(bertdata::taken_items(nullptr, 2, ends, order, taken).size());
}
"""


@pytest.mark.thorough
def test_examples_without_items_are_taken_from_nowhere(tmp_path: Path) -> None:
    run_sanitized(PROGRAM, tmp_path)
