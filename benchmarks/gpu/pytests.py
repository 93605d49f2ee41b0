"""The step that runs the project's GPU tests in several processes."""

import re
import subprocess
import sys

from benchmarks.corpus import ROOT
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.runner import kill_tree
from benchmarks.gpu.sizes import Sizes

ON_A_PROCESSOR = ("tests/trainer/devices", "tests/trainer/model/test_model.py")
"""Tests that are run in place of those marked ``gpu`` in a rehearsal on a processor."""


def run_tests(figures: Figures, sizes: Sizes, processes: int, limit: float) -> None:
    """Run the tests and write how many passed, failed and were skipped. Exit with status 1 if a test failed.

    If the tests do not end in time, those that have ended are counted. pytest's output is written to
    OUT/tests.txt.
    processes: number of processes that run the tests.
    limit: time limit of the tests in seconds.
    """
    chosen = (
        ["-m", "gpu", *find_gpu_modules()]
        if sizes.device == "cuda"
        else ["-m", "not thorough", *ON_A_PROCESSOR]
    )
    command = [sys.executable, "-m", "pytest", "-n", str(processes), "--dist=worksteal", "-v", *chosen]
    output = figures.folder / "tests.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            ended = f"ended with exit status {process.wait(limit)}"
        except subprocess.TimeoutExpired:
            ended = f"did not end within {limit:.0f} s"
        finally:
            kill_tree(process)
    for name, count in count_outcomes(output.read_text(encoding="utf-8", errors="replace")).items():
        figures.add(name, count, "tests")
    if process.returncode:
        raise SystemExit(f"pytest {ended}; see {output.name}")


def find_gpu_modules() -> list[str]:
    """Return the test files that contain tests marked ``gpu``.

    pytest gets only these files, because collecting the tests of all others would take a minute.
    """
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in found if "pytest.mark.gpu" in path.read_text(encoding="utf-8")]


def count_outcomes(output: str) -> dict[str, int]:
    """Return how many tests have passed, failed and been skipped so far.

    output: what pytest has written with -v in several processes, a line for each test that has ended.
    """
    words = re.findall(r"^\[gw\d+\] \[ *\d+%\] ([A-Z]+) ", output, re.MULTILINE)
    return {
        "passed": words.count("PASSED") + words.count("XFAIL"),
        "failed": words.count("FAILED") + words.count("ERROR") + words.count("XPASS"),
        "skipped": words.count("SKIPPED"),
    }
