"""One class name, one class: no two classes of the packages have the same name."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

PACKAGES = ("bertdata", "trainer", "beam_pipelines", "benchmarks", "tools")

ALLOWED = frozenset(
    {
        "Columns",
        "Context",
        "Division",
        "Entry",
        "Part",
        "Pipeline",
        "Place",
        "Plan",
        "Section",
        "Shard",
        "StagePlan",
        "Task",
        "Window",
        "Workers",
        "_CrossEntropy",
    }
)
"""Names that two classes have still; each goes when one of the two is renamed."""


def classes_of(source: str) -> Iterator[str]:
    """The names of the classes that the source defines, those within others too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield node.name


def doubled(folder: Path) -> dict[str, list[str]]:
    """The files that define a class of each name, of names that several classes have."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*.py")):
            for name in classes_of(path.read_text(encoding="utf-8")):
                found.setdefault(name, []).append(path.relative_to(folder).as_posix())
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_class_name_is_defined_once() -> None:
    found = {name: files for name, files in doubled(ROOT).items() if name not in ALLOWED}
    assert found == {}


def test_the_exceptions_are_needed() -> None:
    assert not ALLOWED - doubled(ROOT).keys()


def test_a_planted_class_is_found(tmp_path: Path) -> None:
    for package, source in (("bertdata", "class Span: ..."), ("tools", "def f():\n    class Span: ...")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "planted.py").write_text(source)
    assert doubled(tmp_path) == {"Span": ["bertdata/planted.py", "tools/planted.py"]}
