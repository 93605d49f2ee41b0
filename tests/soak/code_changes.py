"""Small changes of source code, drawn at random from the operators of cosmic-ray.

A change turns a comparison or a condition round, replaces an operator, changes a number by one, or leaves a
loop out. The places are drawn first, each with equal probability, and then the change at a place, so that
operators with many variants do not crowd out the others.
"""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

_LEFT_OUT = (
    "BitOr_",  # almost every | is in an annotation
    "RemoveDecorator",  # nearly all decorators are needed for the import
    "ExceptionReplacer",  # the class that it puts in is unknown to the module
    "VariableReplacer",
    "VariableInserter",
)
_DECLARATIONS = ("frozen=", "kw_only=", "slots=", "strict=")
"""Arguments that only guard against mistakes in the code, so that their values change no result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A place in a file, and the operators that can change it.

    file: path relative to the root of the repository.
    line: number of the line, from 1.
    column: number of the column, from 0.
    operators: for each possible change the operator's name and the number of the occurrence in the file.
    """

    file: str
    line: int
    column: int
    operators: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeChange:
    """A changed file.

    text: the whole file with the change.
    before: the changed line as it was.
    after: the same line with the change.
    """

    file: str
    line: int
    operator: str
    text: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  ->  {self.after.strip()}"


def list_places(root: Path, file: str) -> list[Place]:
    """Return all places of a file that can be changed."""
    text = (root / file).read_text(encoding="utf-8")
    lines, tree = text.splitlines(), get_ast(text)
    nodes = list(ast_nodes(tree))
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name in operator_names():
        if any(part in name for part in _LEFT_OUT):
            continue
        operator: Any = get_operator(name)()
        # mutate_code counts occurrences in the same order of nodes
        positions = [position for node in nodes for position in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(positions):
            found.setdefault(start, []).append((name, occurrence))
    return [
        Place(file=file, line=line, column=column, operators=tuple(operators))
        for (line, column), operators in sorted(found.items())
        if not lines[line - 1][:column].rstrip().endswith(_DECLARATIONS)
    ]


def draw_changes(root: Path, files: Sequence[str], seed: str) -> Iterator[CodeChange]:
    """Yield changes of the files in random order, at most one for each place.

    A change that gives no valid Python, or the same program, is left out.
    """
    stream = random.Random(seed)
    places = [place for file in sorted(files) for place in list_places(root, file)]
    stream.shuffle(places)
    for place in places:
        operator, occurrence = stream.choice(place.operators)
        change = _make_change(root, place, operator, occurrence)
        if change is not None:
            yield change


def _make_change(root: Path, place: Place, operator: str, occurrence: int) -> CodeChange | None:
    """Return the change, or None if it gives no valid Python or the same program."""
    whole = (root / place.file).read_text(encoding="utf-8")
    changed = mutate_code(whole, get_operator(operator)(), occurrence)
    try:
        same = changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(whole))
    except SyntaxError:
        return None
    if same:
        return None
    lines, others = whole.splitlines(), changed.splitlines()
    number = next(
        number for number, pair in enumerate(zip(lines, others, strict=False)) if pair[0] != pair[1]
    )
    return CodeChange(
        file=place.file,
        line=number + 1,
        operator=operator.rpartition("/")[2],
        text=changed,
        before=lines[number],
        after=others[number],
    )
