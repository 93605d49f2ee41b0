"""Nothing in the trainer asks whether a task or an objective has a certain name: it asks the task."""

import ast
from collections.abc import Iterator

import pytest

from bertdata.examples.objectives import OBJECTIVES
from tests.support.paths import ROOT
from trainer.registry import names

KNOWN = {*names("task"), *OBJECTIVES}
CONSTANTS = {"SQUAD", "PRETRAINING"}

EXCEPTIONS = {
    "trainer/extensions/like/": "knows other programs' own names of tasks",
    "trainer/extensions/splitting/pieces.py": "the encoder of every model is called bert, as an objective is",
}


def names_in(node: ast.expr) -> Iterator[str]:
    """The names of tasks and objectives that one side of a comparison, or its items, spell out."""
    if isinstance(node, ast.Constant) and node.value in KNOWN:
        yield str(node.value)
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        yield from {name} & CONSTANTS
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for item in node.elts:
            yield from names_in(item)


def compared(source: str) -> list[str]:
    """The names of tasks and objectives that the source compares with, or matches."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        else:
            sides = [node.value] if isinstance(node, ast.MatchValue) else []
        found += [name for side in sides for name in names_in(side)]
    return found


def comparing_files() -> dict[str, list[str]]:
    """The names that each file of the trainer compares with."""
    paths = sorted((ROOT / "trainer").rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): compared(path.read_text(encoding="utf-8")) for path in paths}
    return {file: names for file, names in found.items() if names}


def test_no_task_or_objective_is_told_by_its_name() -> None:
    assert [file for file in comparing_files() if not file.startswith(tuple(EXCEPTIONS))] == []


def test_every_exception_is_needed() -> None:
    files = comparing_files()
    assert [path for path in EXCEPTIONS if not any(file.startswith(path) for file in files)] == []


@pytest.mark.parametrize(
    "source",
    [
        'if task == "squad": pass',
        'x = "pretraining" != config.task',
        'x = config.task in ("mrpc", "cola")',
        'x = layout.objective == "mlm"',
        "if given.task == SQUAD: pass",
        "x = task != section.PRETRAINING",
        "match task:\n    case 'squad': pass",
    ],
)
def test_a_planted_comparison_is_found(source: str) -> None:
    assert compared(source)


def test_a_task_that_is_asked_is_no_comparison() -> None:
    assert compared('x = find_data(config.task).settings(); y = task in FINE_TUNED; z = head == "qa"') == []
