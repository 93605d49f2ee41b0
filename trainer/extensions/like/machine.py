"""This machine: its GPUs, its files, and the shape of a model whose file is not there.

The published shape stands for such a file, to print; a run asks for the file.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.extensions.like.constants import BERT_BASE, BERT_LARGE

_NAMED_SHAPES = {
    "BERT-Base": (re.compile(r"L-12_H-768|(?<![a-z])base(?![a-z])", re.IGNORECASE), BERT_BASE),
    "BERT-Large": (re.compile(r"L-24_H-1024|(?<![a-z])large(?![a-z])", re.IGNORECASE), BERT_LARGE),
}
"""The shapes that the names of Google's directories tell."""


def count_gpus(devices: Path = Path("/dev")) -> int:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, of those that the driver shows as /dev/nvidia0 and so on."""
    there = len(list(devices.glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(there))))
    return min(there, len([name for name in visible.split(",") if name.strip()]))


def is_here(path: str) -> bool:
    """True for a file of this machine. Other machines are not asked."""
    return not storage.is_remote(path) and Path(path.removeprefix("file://")).is_file()


def find_shape(path: str, published: str | None = None) -> tuple[dict[str, Any], list[str], list[str]]:
    """(keys of the model, missing files, warnings) of a bert_config.json.

    Where the file is not there, the keys are those of the published shape: the given one, or the one that
    the path tells; none where it tells none.
    """
    if is_here(path):
        return {"model_config": path}, [], []
    name = published or next((one for one, (named, _) in _NAMED_SHAPES.items() if named.search(path)), None)
    if name is None:
        return {}, [path], [f"{path}: is not there, so the shape of the model is not shown"]
    told = f"{path}: is not there; the shape of the published file, {name}, is shown"
    return dict(_NAMED_SHAPES[name][1]), [path], [told]


def with_shapes(phases: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """(the phases' keys, missing files, warnings), a missing file of the model replaced by what is known.

    The bert_config.json beside programs that pre-train is that of BERT-Large.
    """
    found, missing, warnings = list[dict[str, Any]](), list[str](), list[str]()
    for keys in phases:
        others = dict(keys)
        path = others.pop("model_config", None)
        published = None if keys.get("task") else "BERT-Large"
        shape, absent, told = ({}, [], []) if path is None else find_shape(path, published)
        found.append(shape | others)
        missing += absent
        warnings += told
    return found, missing, warnings
