"""The tests that run each line of some source files, and how long each test takes."""

import ast
import json
import random
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.soak.forked_pytest import run_in_fork


@dataclass(frozen=True, kw_only=True)
class CoveringTests:
    """The tests that ran each line.

    seconds: duration of each test that passed, with the fixtures that it was the first to need, by its id.
    lines: for each file, the ids of the tests that ran a line, by the number of the line as text.
    is_complete: False if the time was over before all tests had run.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    is_complete: bool = True

    def find(self, root: Path, file: str, line: int) -> list[str]:
        """Return the tests that run the statement of a line, the quickest first.

        A line that runs while the module is imported (a constant) belongs to no test; then these are all
        tests that run some line of the file.
        """
        ran = self.lines.get(file, {})
        numbers = [str(number) for number in _find_statement_lines(root / file, line)]
        found = {name for number in numbers for name in ran.get(number, [])} & self.seconds.keys()
        if not found:
            found = {name for names in ran.values() for name in names} & self.seconds.keys()
        return sorted(found, key=lambda name: (self.seconds[name], name))


def _find_statement_lines(path: Path, line: int) -> range:
    """Return the lines of the innermost statement at a line, or of its head if it has a body."""
    inner: ast.stmt | None = None
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            inner = node if inner is None or node.lineno >= inner.lineno else inner
    if inner is None:
        return range(line, line + 1)
    body: list[ast.stmt] = getattr(inner, "body", [])
    end = body[0].lineno - 1 if body else inner.end_lineno or inner.lineno
    return range(inner.lineno, max(end, inner.lineno) + 1)


class _Recorder:
    """A plugin that tells coverage which test is running, and measures each test's time.

    seconds: time after which no further test begins.
    """

    def __init__(self, coverage: Any, seconds: float) -> None:
        self._coverage = coverage
        self._end = time.monotonic() + seconds
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.was_stopped = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Shuffle the files, so that what ran when the time is over is a fair choice of the tests."""
        files = sorted({item.nodeid.partition("::")[0] for item in items})
        rank = {file: number for number, file in enumerate(random.Random(1).sample(files, len(files)))}
        items.sort(key=lambda item: rank[item.nodeid.partition("::")[0]])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if time.monotonic() > self._end:
            self.was_stopped = True
            item.session.shouldstop = "the time for recording is over"
        self._coverage.switch_context(item.nodeid)
        start = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - start
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def record_covering_tests(
    root: Path,
    files: Iterable[str],
    tests: Sequence[str],
    marks: str,
    result: Path,
    log: Path,
    seconds: float,
) -> CoveringTests:
    """Run the tests once and return which of them run which line. Raises RuntimeError if one of them fails.

    files: source files, relative to the root.
    tests: files and directories of tests, relative to the root.
    marks: pytest's expression for the marks of the tests to run.
    result: file that the tests' process writes the result to.
    seconds: time after which no further test begins.
    """
    wanted = sorted(files)

    def record() -> int:
        from coverage import Coverage

        coverage = Coverage(data_file=None, include=[str(root / file) for file in wanted])
        recorder = _Recorder(coverage, seconds)
        coverage.start()
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=short", "-m", marks]
        status = pytest.main([*options, *tests], plugins=[recorder])
        coverage.stop()
        data = coverage.get_data()
        lines = {
            file: {str(line): names for line, names in data.contexts_by_lineno(str(root / file)).items()}
            for file in wanted
        }
        sound = {name: taken for name, taken in recorder.seconds.items() if name not in recorder.failed}
        found = CoveringTests(seconds=sound, lines=lines, is_complete=not recorder.was_stopped)
        result.write_text(json.dumps(asdict(found)), encoding="utf-8")
        print("failed without any change:", *recorder.failed)
        return int(status)

    status = run_in_fork(record, root, log, 3 * seconds + 600)
    if not result.exists():
        raise RuntimeError(f"the tests ended with {status}; see {log}")
    return read_covering_tests(result)


def read_covering_tests(result: Path) -> CoveringTests:
    """Read a result that ``record_covering_tests`` has written."""
    return CoveringTests(**json.loads(result.read_text(encoding="utf-8")))
