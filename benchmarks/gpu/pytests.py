"""The project's GPU tests, run in several processes."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.corpus import ROOT
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes

ON_A_PROCESSOR = ("tests/trainer/devices", "tests/trainer/model/test_model.py")
"""Tests that a rehearsal on a processor runs instead of the tests marked ``gpu``."""


def tests(figures: Figures, sizes: Sizes, processes: int) -> None:
    """Run the tests and write the number of each outcome. Exit with status 1 if a test failed.

    The report is OUT/tests.xml.
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
    """Return the test files with tests marked ``gpu``. Collecting all other files would take a minute."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in found if "pytest.mark.gpu" in path.read_text(encoding="utf-8")]


def count_outcomes(report: Path) -> dict[str, int]:
    """Return the numbers of passed, failed and skipped tests in a report."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    all_of = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped")}
    failed = sum(int(suite.get(name, 0)) for suite in suites for name in ("failures", "errors"))
    return {
        "passed": all_of["tests"] - all_of["skipped"] - failed,
        "failed": failed,
        "skipped": all_of["skipped"],
    }
