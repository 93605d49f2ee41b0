"""This machine: its GPUs, its files and checkpoints, and the shape of a model whose file is not there.

The published shape stands for such a file, to print; a run asks for the file.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.programs.shapes import BERT_BASE, BERT_LARGE

KEEP_ALL = 1 << 30
"""A number of checkpoints that no run has."""

_STATE = re.compile(r'^model_checkpoint_path: "([^"\0]*)"', re.MULTILINE)

_NAMED_SHAPES = {
    "BERT-Base": (re.compile(r"L-12_H-768|(?<![a-z])base(?![a-z])", re.IGNORECASE), BERT_BASE),
    "BERT-Large": (re.compile(r"L-24_H-1024|(?<![a-z])large(?![a-z])", re.IGNORECASE), BERT_LARGE),
}
"""The shapes that the names of Google's directories tell."""

_NO_SHAPE = "is not there, so the shape of the model is not shown"


def count_gpus(devices: Path = Path("/dev")) -> int:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, of those that the driver shows as /dev/nvidia0 and so on."""
    there = len(list(devices.glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(there))))
    return min(there, len([name for name in visible.split(",") if name.strip()]))


def is_here(path: str) -> bool:
    """True for a file of this machine. Other machines are not asked."""
    return not storage.is_remote(path) and Path(path.removeprefix("file://")).is_file()


def with_shapes(
    phases: Sequence[Mapping[str, Any]], *, asks_elsewhere: bool = False
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """(the phases' keys, a warning for each missing file of a model), such a file replaced by what is known.

    The bert_config.json beside programs that pre-train is that of BERT-Large. For others the path tells it.
    asks_elsewhere: a file in a bucket is read there, which takes time.
    """
    found, missing = list[dict[str, Any]](), dict[str, str]()
    for keys in phases:
        path, shape = keys.get("model_config"), dict[str, Any]()
        others = {name: value for name, value in keys.items() if name != "model_config"}
        is_elsewhere = asks_elsewhere and path is not None and storage.is_remote(path)
        if path is not None and (is_here(path) or (is_elsewhere and storage.exists(path))):
            shape = {"model_config": path}
        elif path is not None:
            names = [name for name, (named, _) in _NAMED_SHAPES.items() if named.search(path)]
            name = next(iter(names), None) if keys.get("task") else "BERT-Large"
            shown = f"the shape of the published file, {name}, is shown"
            missing[path] = f"{path}: is not there; {shown}" if name else f"{path}: {_NO_SHAPE}"
            shape = _NAMED_SHAPES[name][1] if name else {}
        found.append(shape | others)
    return found, missing


def has_checkpoints(output_dir: str) -> bool:
    """True for an output directory of this machine with checkpoints: TensorFlow continues there unasked."""
    if storage.is_remote(output_dir):
        return False
    return any(Path(output_dir.removeprefix("file://"), "checkpoints").glob("step-*"))


def find_named_step(output_dir: str) -> int | None:
    """The step of the checkpoint that TensorFlow's state file in the directory names, or None without it."""
    state = storage.join(output_dir, "checkpoint")
    if not is_here(state):
        return None
    named = _STATE.search(storage.read_bytes(state).decode(errors="replace"))
    step = named and re.search(r"-([0-9]{1,18})$", named[1])
    return int(step[1]) if step else None
