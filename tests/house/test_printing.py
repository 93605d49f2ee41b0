"""All lines for a person are printed by bertdata/io/terminal.py, which escapes what a terminal would obey."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ALLOWED = {
    "bertdata/io/terminal.py": "the place itself",
    "bertdata/cli/md5.py": "names as they are, for md5sum -c, where no terminal reads them",
}
PACKAGES = ("bertdata", "beam_pipelines", "trainer")


def prints_of(source: str) -> Iterator[int]:
    """The lines that print: calls of print, and of write on standard output or standard error."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "print" or called in ("sys.stdout.write", "sys.stderr.write"):
                yield node.lineno


def test_nothing_else_prints() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if str(path.relative_to(ROOT)) not in ALLOWED
        for line in prints_of(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("line", ["print(1)", "import sys; sys.stderr.write('a')", "sys.stdout.write(x)"])
def test_a_planted_print_is_found(line: str) -> None:
    assert list(prints_of(line)) == [1]


def test_the_exceptions_are_there() -> None:
    assert all(Path(ROOT, name).is_file() for name in ALLOWED)
