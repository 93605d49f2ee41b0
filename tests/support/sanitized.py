"""Small C++ programs that include the kernels' headers, run under g++'s sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def run_sanitized(program: str, folder: Path) -> None:
    """Build and run a program. It must succeed and print nothing. Skips the test if g++ has no sanitizers."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source, binary = folder / "program.cpp", folder / "program"
    source.write_text(program)
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover"]
    flags.append(f"-I{ROOT / 'bertdata' / '_native'}")
    built = subprocess.run(
        [compiler, *flags, source, "-o", binary], capture_output=True, text=True, check=False
    )
    if "cannot find" in built.stderr:
        pytest.skip("g++ has no sanitizers")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([binary], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
