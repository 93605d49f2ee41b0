"""One objective's columns, class and name are known in its own room: all others ask for groups of columns."""

import ast
from collections.abc import Collection, Iterator

import pytest

from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.records import ExampleBatch
from tests.support.paths import ROOT

PACKAGES = ("bertdata", "beam_pipelines", "trainer")
TRAINER = "trainer/"
ROOM = "bertdata/examples/bert/"
COMMON = {column.name for column in ExampleBatch.columns()}
COLUMNS = {name for column in BertBatch.columns() for name in (column.name, column.one)} - COMMON
CLASSES = {BertBatch.__name__, BertExample.__name__}
PLAIN_WORDS = {"positions", "labels"}
"""Names of columns that a local variable may have too."""
TRAINERS_WORDS = {*PLAIN_WORDS, "first_length"}
"""Names of columns that the trainer has for things of its own: positions of tokens, labels of classes."""

EXCEPTIONS = {
    "bertdata/records.py": "declares which objective files are of that name none",
    "bertdata/config/settings.py": "declares which objective is made where none is named",
    "bertdata/config/recipes.py": "the recipes before those of other encoders are of this objective",
    "bertdata/cli/common/script_examples.py": "stands in for scripts that make this objective alone",
    "bertdata/examples/dynamic_masking/masker.py": "its drawn masks have fields of the same names",
    "bertdata/examples/objectives.py": "registers the package's objectives",
    "bertdata/examples/mlm/": "its columns of masks have the same names",
    "bertdata/examples/sop/": "its columns of segments and masks have the same names",
    "bertdata/examples/span/": "its columns of masks have the same names",
    "bertdata/examples/electra/": "its column of segments has the same name",
    "bertdata/examples/squad/": "its column of segments has the same name",
    "bertdata/examples/classification/": "its columns of segments have the same name",
    "bertdata/loaders/modernbert/": "its batches have the names of ModernBERT's",
    "trainer/config/model.py": "the name is also that of a kind of model",
    "trainer/registry/": "the name is also that of a kind of model",
    "trainer/extensions/like/": "other programs' directories have that name",
    "trainer/extensions/splitting/pieces.py": "the encoder of every model has that name",
}


def names_in(source: str, known: Collection[str] = COLUMNS) -> Iterator[str]:
    """What the source says of the objective: its name, its classes, these of its columns."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in {"bert", *known}:
            yield f"{node.value!r}"
        elif isinstance(node, ast.Attribute) and node.attr in known:
            yield f".{node.attr}"
        elif isinstance(node, (ast.keyword, ast.arg)) and node.arg in set(known) - PLAIN_WORDS:
            yield f"{node.arg}="
        elif isinstance(node, ast.Name) and node.id in (set(known) - PLAIN_WORDS) | CLASSES:
            yield node.id
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bertdata.examples.bert"):
            yield f"import of {node.module}"


def named() -> dict[str, list[str]]:
    """What each file outside the objective's room says of it."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            known = COLUMNS - TRAINERS_WORDS if name.startswith(TRAINER) else COLUMNS
            names = sorted(set(names_in(path.read_text(encoding="utf-8"), known)))
            if names and not name.startswith(ROOM):
                found[name] = names
    return found


def test_nothing_outside_its_room_knows_an_objectives_columns_or_name() -> None:
    allowed = tuple(EXCEPTIONS)
    assert {file: names for file, names in named().items() if not file.startswith(allowed)} == {}


def test_every_exception_is_needed() -> None:
    files = named()
    assert [path for path in EXCEPTIONS if not any(file.startswith(path) for file in files)] == []


@pytest.mark.parametrize(
    "source",
    [
        'x = layout.objective == "bert"',
        "x = batch.mask_ends",
        'x = getattr(batch, "positions")',
        "f(next_labels=1)",
        "isinstance(batch, BertBatch)",
        "from bertdata.examples.bert.settings import BertSettings",
    ],
)
def test_a_planted_name_is_found(source: str) -> None:
    assert [*names_in(source)]
