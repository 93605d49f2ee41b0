"""No device or launcher is named in code outside the places that are there for them."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT

TRAINER = ROOT / "trainer"
NAMES = {
    *("cpu", "cuda", "hpu", "ipu", "xla", "tpu", "gpu", "gaudi", "nccl", "hccl", "gloo"),
    *("horovod", "horovodrun", "torchrun", "poprun"),
    *("popdist", "poptorch", "habana_frameworks", "torch_xla"),
}
PLACES = {"devices", "collectives", *(f"extensions/{name}" for name in ("vendors", "launchers", "like"))}
# The registry, a first run with each launcher, the default device, and the sections of devices.
CONFIGURATION = {
    "registry/__init__.py",
    "registry/extensions.py",
    "run/usage.py",
    *(f"config/{name}.py" for name in ("section", "run_options", "device_keys", "keys", "settings")),
}
TOLD = [
    path
    for path in sorted(TRAINER.rglob("*.py"))
    if not PLACES & {parent.as_posix() for parent in path.relative_to(TRAINER).parents}
    and path.relative_to(TRAINER).as_posix() not in CONFIGURATION
]


def words(source: str) -> Iterator[tuple[int, str]]:
    """(line, word) of each name, attribute, import and string of the code, ``tensor.cpu()`` included.

    Docstrings and comments are for readers: they may name what they like.
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
    """A name may be part of another: ``cuda_graphs``."""
    return sorted(
        (line, word) for line, word in words(source) if NAMES & {word.lower(), *word.lower().split("_")}
    )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch_xla.core", "torch_xla"),
        ("from habana_frameworks.torch import hpu as h", "habana_frameworks hpu"),
        ("x = torch.device('cuda:0')", "cuda"),
        ("y = tensor.cpu()", "cpu"),
        ("def f(gpu: int = 0) -> None: ...", "gpu"),
        ("f(hpu=1)", "hpu"),
        ("if options['cuda_graphs']: use_gpu()", "cuda_graphs use_gpu"),
        ("z = f'start under {a} torchrun'", "torchrun"),
        ("match d:\n    case 'ipu': pass", "ipu"),
        ('"""Runs on CUDA."""  # and on cpu\ndef f():\n    """As gloo does."""', ""),
        ("cpus = available_cores('cpuset')", ""),
    ],
)
def test_a_planted_name_is_found(source, found):
    assert sorted(word for _, word in named(source)) == found.split()


def test_the_places_that_are_there_for_names_are_full_of_them():
    files = [path for place in PLACES for path in (TRAINER / place).glob("*.py")]
    found = {word.lower() for path in files for _, word in named(path.read_text(encoding="utf-8"))}
    assert {"cpu", "cuda", "nccl", "gloo", "horovod", "horovodrun", "torchrun"} <= found
    assert len(TOLD) > 20


@pytest.mark.parametrize("path", TOLD, ids=lambda path: str(path.relative_to(TRAINER)))
def test_no_device_or_launcher_is_named(path):
    assert named(path.read_text(encoding="utf-8")) == []
