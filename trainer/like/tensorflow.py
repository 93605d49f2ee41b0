"""Habits of the TensorFlow programs of Google and MLPerf: required flags, checkpoints, bert_config.json."""

import re
from pathlib import Path
from typing import Any

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.devices.examine import examine_device
from trainer.like.constants import BERT_BASE, BERT_LARGE

KEEP_ALL = 1 << 30
"""A number of checkpoints that no run has."""

_STATE = re.compile(r'^model_checkpoint_path: "([^"\0]*)"', re.MULTILINE)
_NAMED_SHAPES = {
    "BERT-Base": (re.compile(r"L-12_H-768|(?<![a-z])base(?![a-z])", re.IGNORECASE), BERT_BASE),
    "BERT-Large": (re.compile(r"L-24_H-1024|(?<![a-z])large(?![a-z])", re.IGNORECASE), BERT_LARGE),
}
"""The shapes that the names of Google's directories tell."""


def require_flags(given: Given, *names: str) -> None:
    """UsageError, in absl's words, for the first of the flags without a value."""
    for name in names:
        if given[name] is None:
            raise UsageError(f"flag --{name}=None: Flag --{name} must have a value other than None.")


def is_here(path: str) -> bool:
    """True for a file of this machine; other machines are not asked."""
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


def has_checkpoints(output_dir: str) -> bool:
    """True for an output directory of this machine with checkpoints: TensorFlow continues there unasked."""
    if storage.is_remote(output_dir):
        return False
    return any(Path(output_dir.removeprefix("file://"), "checkpoints").glob("step-*"))


def find_named_step(output_dir: str) -> int | None:
    """The step of the checkpoint that TensorFlow's state file in the directory names; None without it."""
    state = storage.join(output_dir, "checkpoint")
    if not is_here(state):
        return None
    named = _STATE.search(storage.read_bytes(state).decode(errors="replace"))
    step = named and re.search(r"-(\d+)$", named[1])
    return int(step[1]) if step else None


def usual_device() -> str:
    """The device of a program that takes a GPU where there is one."""
    return "cuda" if examine_device("cuda").there else "cpu"
