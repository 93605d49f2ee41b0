"""The step that runs the project's GPU tests in several processes."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.corpus import ROOT
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes

ON_A_PROCESSOR = ("tests/trainer/devices", "tests/trainer/model/test_model.py")
"""Tests that are run in place of those marked ``gpu`` in a rehearsal on a processor."""


def run_tests(figures: Figures, sizes: Sizes, processes: int) -> None:
    """Run the tests and write how many passed, failed and were skipped. Exit with status 1 if a test failed.

    pytest's report is written to OUT/tests.xml.
    """
    report = figures.folder / "tests.xml"
    report.unlink(missing_ok=True)
    chosen = (
        ["-m", "gpu", *find_gpu_modules()]
        if sizes.device == "cuda"
        else ["-m", "not thorough", *ON_A_PROCESSOR]
    )
    words = ["-n", str(processes), "--dist=worksteal", "-v", f"--junitxml={report}", *chosen]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False)
    for name, count in count_outcomes(report).items():
        figures.add(name, count, "tests")
    if done.returncode:
        raise SystemExit(f"pytest ended with exit status {done.returncode}; see the .out file of this step")


def find_gpu_modules() -> list[str]:
    """Return the test files that contain tests marked ``gpu``.

    pytest gets only these files, because collecting the tests of all others would take a minute.
    """
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in found if "pytest.mark.gpu" in path.read_text(encoding="utf-8")]


def count_outcomes(report: Path) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, from pytest's report."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    all_of = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped")}
    failed = sum(int(suite.get(name, 0)) for suite in suites for name in ("failures", "errors"))
    return {
        "passed": all_of["tests"] - all_of["skipped"] - failed,
        "failed": failed,
        "skipped": all_of["skipped"],
    }
