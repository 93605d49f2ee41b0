"""Facts about this machine that the translation of a command line needs: its GPUs, files and checkpoints.

To print a configuration, a missing model file is replaced by the shape of a published model. A run needs the
file.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.programs.shapes import BERT_BASE, BERT_LARGE

KEEP_ALL_CHECKPOINTS = 1 << 30
"""Value of the setting keep_checkpoints for programs that never delete a checkpoint."""

_STATE = re.compile(r'^model_checkpoint_path: "([^"\0]*)"', re.MULTILINE)

_NAMED_SHAPES = {
    "BERT-Base": (re.compile(r"L-12_H-768|(?<![a-z])base(?![a-z])", re.IGNORECASE), BERT_BASE),
    "BERT-Large": (re.compile(r"L-24_H-1024|(?<![a-z])large(?![a-z])", re.IGNORECASE), BERT_LARGE),
}
"""For each published model, a pattern that the names of its directories match, and its shape."""

_NO_SHAPE = "is not there, so the shape of the model is not shown"


def count_gpus(devices: Path = Path("/dev")) -> int:
    """Return the number of GPUs that the imitated program would see: /dev/nvidia0 and so on, limited by
    CUDA_VISIBLE_DEVICES.

    devices: directory of the machine's devices.
    """
    there = len(list(devices.glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(there))))
    return min(there, len([name for name in visible.split(",") if name.strip()]))


def is_local_file(path: str) -> bool:
    """Return True if the path is a file on this machine. For a remote path, return False without a check."""
    return not storage.is_remote(path) and Path(path.removeprefix("file://")).is_file()


def replace_missing_model_files(
    phases: Sequence[Mapping[str, Any]], *, asks_elsewhere: bool = False
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Replace missing model files by the shapes of published models.

    Returns the configuration keys of each phase, and a warning for each missing file.

    In pre-training, a missing bert_config.json is assumed to be BERT-Large's, which other programs include.
    In fine-tuning, the shape is guessed from the name of the path.
    phases: configuration keys of each phase.
    asks_elsewhere: True to check model files in remote storage too, which takes time.
    """
    found, missing = list[dict[str, Any]](), dict[str, str]()
    for keys in phases:
        path, shape = keys.get("model_config"), dict[str, Any]()
        others = {name: value for name, value in keys.items() if name != "model_config"}
        is_elsewhere = asks_elsewhere and path is not None and storage.is_remote(path)
        if path is not None and (is_local_file(path) or (is_elsewhere and storage.exists(path))):
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
    """Return True if a local output directory has checkpoints.

    In a directory with checkpoints, programs for TensorFlow continue training without being asked.
    """
    if storage.is_remote(output_dir):
        return False
    return any(Path(output_dir.removeprefix("file://"), "checkpoints").glob("step-*"))


def find_named_step(output_dir: str) -> int | None:
    """Return the step of the checkpoint that TensorFlow's file ``checkpoint`` in a directory names.

    Returns None if there is no such file.
    """
    state = storage.join(output_dir, "checkpoint")
    if not is_local_file(state):
        return None
    named = _STATE.search(storage.read_bytes(state).decode(errors="replace"))
    step = named and re.search(r"-([0-9]{1,18})$", named[1])
    return int(step[1]) if step else None
