"""No device or launcher is named in code outside the places that are there for them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TRAINER = Path(__file__).parent.parent / "trainer"
NAMES = {
    *(
        "cpu",
        "cuda",
        "hpu",
        "ipu",
        "xla",
        "tpu",
        "gpu",
        "gaudi",
        "nccl",
        "hccl",
        "gloo",
        "horovod",
        "torchrun",
    ),
    *("horovodrun", "poprun", "popdist", "poptorch", "habana", "habana_frameworks", "torch_xla"),
}
PLACES = {"devices", "collectives"}
CONFIGURATION = {"config.py", "aliases.py", "flags.py"}
TOLD = [
    path
    for path in sorted(TRAINER.rglob("*.py"))
    if not PLACES & set(path.relative_to(TRAINER).parts) and path.name not in CONFIGURATION
]


def words(source: str) -> Iterator[tuple[int, str]]:
    """(line, word) of each name, attribute and string in the code; docstrings and comments are for readers.

    A word is what stands between characters other than letters, digits and underscores. What follows a
    point after another word counts as one of its own; a method is no device: ``tensor.cpu()`` counts too.
    """
    tree = ast.parse(source)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        for value in vars(node).values():
            texts = value if isinstance(value, list) else [value]
            if id(node) not in prose:
                line = getattr(node, "lineno", 0)
                yield from (
                    (line, word)
                    for text in texts
                    if isinstance(text, str)
                    for word in re.findall(r"\w+", text)
                )


def named(source: str) -> list[tuple[int, str]]:
    return sorted((line, word) for line, word in words(source) if word.lower() in NAMES)


@pytest.mark.parametrize("path", TOLD, ids=lambda path: str(path.relative_to(TRAINER)))
def test_no_device_or_launcher_is_named(path):
    assert named(path.read_text(encoding="utf-8")) == []
