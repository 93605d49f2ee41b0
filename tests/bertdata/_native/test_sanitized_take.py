"""The kernel that takes examples, under the undefined-behaviour sanitizer: columns without any items."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

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
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source, program = tmp_path / "take.cpp", tmp_path / "take"
    source.write_text(PROGRAM)
    flags = [
        "-std=c++17",
        "-fsanitize=undefined",
        "-fno-sanitize-recover",
        f"-I{ROOT / 'bertdata' / '_native'}",
    ]
    built = subprocess.run(
        [compiler, *flags, source, "-o", program], capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip("g++ has no undefined-behaviour sanitizer")
    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
