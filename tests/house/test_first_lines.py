"""First lines of docstrings and of the kernels' comments are whole sentences: none has a semicolon."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT

QUOTED = re.compile(r'``.*?``|`.*?`|".*?"')


def first_lines(source: str) -> Iterator[str]:
    """The first line of each docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (ast.get_docstring(node) or "").splitlines()[:1]


def first_comments(source: str) -> Iterator[str]:
    """The first line of each comment of C++ that stands in lines of its own."""
    before = ""
    for line in map(str.strip, source.splitlines()):
        if line.startswith("//") and not before.startswith("//"):
            yield line
        before = line


def is_two_in_one(line: str) -> bool:
    """True for a semicolon that is not quoted."""
    return ";" in QUOTED.sub("", line)


@pytest.mark.parametrize("package", ["bertdata", "trainer", "beam_pipelines", "benchmarks", "tools"])
def test_no_first_line_of_a_package_has_a_semicolon(package: str) -> None:
    found = []
    for path in sorted((ROOT / package).rglob("*")):
        if path.suffix in (".py", ".h", ".cpp"):
            lines = first_lines if path.suffix == ".py" else first_comments
            found += [(path.name, line) for line in lines(path.read_text()) if is_two_in_one(line)]
    assert found == []


@pytest.mark.parametrize(
    ("lines", "source"),
    [(first_lines, 'def f():\n    """One; two."""'), (first_comments, "int a;\n  // One; two.\n  // three")],
)
def test_a_planted_semicolon_is_found(lines, source) -> None:
    assert [is_two_in_one(line) for line in lines(source)] == [True]


def test_a_quoted_semicolon_is_none() -> None:
    assert not is_two_in_one('Ends at ";", as in ``a; b``.')
