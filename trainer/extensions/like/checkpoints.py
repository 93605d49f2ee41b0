"""Checkpoints that a run starts from or continues, asked or unasked."""

import re
from pathlib import Path
from typing import Any

from bertdata.io import storage
from trainer.extensions.like.machine import is_here

KEEP_ALL = 1 << 30
"""A number of checkpoints that no run has."""

_STATE = re.compile(r'^model_checkpoint_path: "([^"\0]*)"', re.MULTILINE)


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
    step = named and re.search(r"-(\d+)$", named[1])
    return int(step[1]) if step else None


def last_checkpoint(output_dir: str) -> int:
    """The number of the last checkpoint in a run's directory, over both phases, or 0 where there is none."""
    if not storage.is_directory(storage.join(output_dir, "checkpoints")):
        return 0
    from trainer.checkpoint.state import find_checkpoints  # imports torch

    return max(find_checkpoints(output_dir), default=0)


def continued(
    output_dir: str, *, phase1_end_step: int | None, resume_step: int | None = None, until: int = -1
) -> dict[str, Any]:
    """The keys of --resume_from_checkpoint alone: what is in output_dir is continued.

    phase1_end_step: of phase 2, whose first checkpoint comes after that one; None for phase 1.
    resume_step: the checkpoint to continue; None: the last. until: the update of the phase to stop at.
    """
    last = last_checkpoint(output_dir) if resume_step is None else resume_step
    end = phase1_end_step or 0
    resumes = phase1_end_step is None or last > end
    done = last - end if resumes else 0
    keys: dict[str, Any] = {"phase2": phase1_end_step is not None}
    if phase1_end_step is not None:
        keys["phase1_end_step"] = end if resumes or resume_step is None else resume_step
    keys["resume"] = resumes
    if resumes:
        keys["resume_step"] = resume_step
    return keys | {"steps_this_run": max(1, until - done) if until >= 0 else None}


def started(*, start: str | None = None, phase2: bool = False, until: int = -1) -> dict[str, Any]:
    """The keys of a phase that begins at update 0, from random weights or a checkpoint with its moments."""
    return {
        "phase2": phase2 and start is not None,
        "resume": False,
        "start_from_ckpt": start,
        "start_moments": start is not None,
        "steps_this_run": max(1, until) if until >= 0 else None,
    }
