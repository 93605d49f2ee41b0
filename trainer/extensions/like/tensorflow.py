"""Habits of the TensorFlow programs of Google and MLPerf: required flags, checkpoints, device."""

import re
from pathlib import Path

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.graphics_cards import count_gpus
from trainer.extensions.like.shapes import is_here

KEEP_ALL = 1 << 30
"""A number of checkpoints that no run has."""

_STATE = re.compile(r'^model_checkpoint_path: "([^"\0]*)"', re.MULTILINE)


def require_flags(given: Given, *names: str) -> None:
    """UsageError, in absl's words, for the first of the flags without a value."""
    for name in names:
        if given[name] is None:
            raise UsageError(f"flag --{name}=None: Flag --{name} must have a value other than None.")


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
    return "cuda" if count_gpus() else "cpu"
