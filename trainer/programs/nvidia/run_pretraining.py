"""NVIDIA's run_pretraining.py for PyTorch: the meaning of its command lines."""

import math
from typing import Any

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.batch_sizes import micro_batch
from trainer.programs.meaning import Meaning, phase_keys
from trainer.workers.launchers import find_rank

LARGEST_SCALE = 2.0**24
"""The loss scale that apex does not raise its own above."""

ONE_GPU = "without a launcher the program uses all visible GPUs, here one: torchrun starts more"
"""A warning where the environment tells of one process."""

HDF5_DATA = (
    "hdf5_lower_case_1_seq_len_{}_max_pred_{}_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/"
    "books_wiki_en_corpus"
)
"""The directory of NVIDIA's data for sequences of so many ids and masked ids."""


def resolve(given: Given) -> Meaning:
    """Return the phase that the command line trains."""
    keys = phase_of(given) | {
        "allreduce_post_accumulation_fp16": given["allreduce_post_accumulation"]
        and given["allreduce_post_accumulation_fp16"],
        "recompute": "always" if given["checkpoint_activations"] else "auto",
        "log_every": max(1, int(given["log_freq"])),
    }
    if given.version:
        keys["gelu"] = "tanh"  # of a9e2c1d5; 65211bd9 has the error function
        if given["cuda_graphs"]:
            keys["device_options"] = {"cuda_graphs": True}
    if keys["world_size"] == 1 and not given.version:
        given.warn(ONE_GPU)
    if given["loss_scale"] and not given.version:
        given.warn("--loss_scale is kept; the program overwrites it with --init_loss_scale")
    return Meaning(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def phase_of(given: Given) -> dict[str, Any]:
    """Return the keys that this program and Habana's give a phase by the same flags."""
    count, scale = given["gradient_accumulation_steps"], float(given["init_loss_scale"])
    size = micro_batch(given["train_batch_size"], count)
    if not given["do_train"]:
        raise UsageError("`do_train` must be True.")
    keys = phase_keys(given) | _start(given)
    keys |= {
        "precision": "fp16" if given["fp16"] or given["amp"] else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(LARGEST_SCALE, scale),
        "steps": math.ceil(given["max_steps"]),
        "batch_size": size,
        "accumulation": count,
        "world_size": find_rank()[1],
    }
    if given["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        given.warn("--skip_checkpoint: one checkpoint is saved all the same, at the end")
    return keys


def _start(given: Given) -> dict[str, Any]:
    """Return the keys of the phase's start. Without --resume_from_checkpoint it begins anew."""
    until, start = given["steps_this_run"], given["init_checkpoint"]
    if not given["resume_from_checkpoint"]:
        ignored = [name for name in ("init_checkpoint", "resume_step", "phase2") if name in given]
        reason = "acts only with --resume_from_checkpoint: ignored, as by the program"
        given.warn(*(f"--{name} {reason}" for name in ignored))
        return started(until=until)
    if start:
        return started(start=start, phase2=given["phase2"], until=until)
    return continued(
        given["output_dir"],
        phase1_end_step=given["phase1_end_step"] if given["phase2"] else None,
        resume_step=None if given["resume_step"] == -1 else given["resume_step"],
        until=until,
    )


def _last_checkpoint(output_dir: str) -> int:
    """Return the number of the last checkpoint in a run's directory, over both phases. 0 without one."""
    if not storage.is_directory(storage.join(output_dir, "checkpoints")):
        return 0
    from trainer.checkpoints.checkpoint import find_checkpoints  # imports torch

    return max(find_checkpoints(output_dir), default=0)


def continued(
    output_dir: str, *, phase1_end_step: int | None, resume_step: int | None = None, until: int = -1
) -> dict[str, Any]:
    """Return the keys of --resume_from_checkpoint alone: what is in output_dir is continued.

    phase1_end_step: of phase 2, whose first checkpoint comes after that one; None for phase 1.
    resume_step: the checkpoint to continue; None: the last. until: the update of the phase to stop at.
    """
    last = _last_checkpoint(output_dir) if resume_step is None else resume_step
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
    """Return the keys of a phase from update 0 on. start: a checkpoint for its weights and moments."""
    return {
        "phase2": phase2 and start is not None,
        "resume": False,
        "start_from_ckpt": start,
        "start_moments": start is not None,
        "moments_updates": None if start is None else 0,  # the program counts from 0 again
        "steps_this_run": max(1, until) if until >= 0 else None,
    }
