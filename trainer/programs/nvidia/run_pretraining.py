"""Translate the command lines of NVIDIA's run_pretraining.py for PyTorch to this trainer's configuration."""

import math
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.batch_sizes import compute_micro_batch_size
from trainer.programs.translated_command import TranslatedCommand, make_phase_keys
from trainer.workers.launchers import find_rank

LARGEST_SCALE = 2.0**24
"""Upper bound of the loss scale that NVIDIA's library apex adjusts during training."""

ONE_GPU = "without a launcher the program uses all visible GPUs, here one: torchrun starts more"
"""Warning if no launcher has set its environment variables, so that only this process trains."""

HDF5_DATA = (
    "hdf5_lower_case_1_seq_len_{}_max_pred_{}_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/"
    "books_wiki_en_corpus"
)
"""Name of the directory with NVIDIA's data, for each pair (token ids per example, masked ids per example)."""


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for one phase of pre-training."""
    keys = compute_phase_keys(flags) | {
        "allreduce_post_accumulation_fp16": flags["allreduce_post_accumulation"]
        and flags["allreduce_post_accumulation_fp16"],
        "recompute": "always" if flags["checkpoint_activations"] else "auto",
        "log_every": max(1, int(flags["log_freq"])),
    }
    if flags.version:
        # Two published versions differ here: commit a9e2c1d5 uses the tanh formula of GELU, commit 65211bd9
        # does not.
        keys["gelu"] = "tanh"
        if flags["cuda_graphs"]:
            keys["device_options"] = {"cuda_graphs": True}
    if keys["world_size"] == 1 and not flags.version:
        flags.warn(ONE_GPU)
    if flags["loss_scale"] and not flags.version:
        flags.warn("--loss_scale is kept; the program overwrites it with --init_loss_scale")
    return TranslatedCommand(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def compute_phase_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys of a phase. Habana's program has the same flags and uses this function
    too.
    """
    count, scale = flags["gradient_accumulation_steps"], float(flags["init_loss_scale"])
    size = compute_micro_batch_size(flags["train_batch_size"], count)
    if not flags["do_train"]:
        raise UsageError("`do_train` must be True.")
    keys = make_phase_keys(flags) | _make_starting_point_keys(flags)
    keys |= {
        "precision": "fp16" if flags["fp16"] or flags["amp"] else "fp32",
        "init_loss_scale": scale,
        "max_loss_scale": max(LARGEST_SCALE, scale),
        "steps": math.ceil(flags["max_steps"]),
        "batch_size": size,
        "accumulation": count,
        "world_size": find_rank()[1],
    }
    if flags["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        flags.warn("--skip_checkpoint: one checkpoint is saved all the same, at the end")
    return keys


def _make_starting_point_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for the checkpoint that the phase starts from.

    Without --resume_from_checkpoint, the phase starts at update 0.
    """
    until, start = flags["steps_this_run"], flags["init_checkpoint"]
    if not flags["resume_from_checkpoint"]:
        ignored = [name for name in ("init_checkpoint", "resume_step", "phase2") if name in flags]
        for name in ignored:
            flags.warn(f"--{name} acts only with --resume_from_checkpoint: ignored, as by the program")
        return make_start_keys(until=until)
    if start:
        return make_start_keys(start=start, phase2=flags["phase2"], until=until)
    return make_continue_keys(
        flags["output_dir"],
        phase1_end_step=flags["phase1_end_step"] if flags["phase2"] else None,
        resume_step=None if flags["resume_step"] == -1 else flags["resume_step"],
        until=until,
    )


def _find_last_checkpoint(output_dir: str) -> int:
    """Return the number of the newest checkpoint in a run's directory, counted over both phases, or 0."""
    if not storage.is_directory(storage.join(output_dir, "checkpoints")):
        return 0
    from trainer.checkpoints.checkpoint import find_checkpoints  # this module imports torch

    return max(find_checkpoints(output_dir), default=0)


def make_continue_keys(
    output_dir: str, *, phase1_end_step: int | None, resume_step: int | None = None, until: int = -1
) -> dict[str, Any]:
    """Return the configuration keys for a run that continues from the checkpoints in its output_dir.

    This is what --resume_from_checkpoint means if no checkpoint is named.
    phase1_end_step: for phase 2, the last step of phase 1. Checkpoints after it belong to phase 2. None for
    phase 1.
    resume_step: number of the checkpoint to continue from. None: the newest.
    until: update of the phase after which the run stops. Negative: it runs to the end.
    """
    # Checkpoints are numbered over both phases. Example: phase 1 has 7038 updates. If the newest checkpoint
    # is 7100, phase 2 resumes at its update 62. If it is 7038, phase 2 has not begun yet.
    last = _find_last_checkpoint(output_dir) if resume_step is None else resume_step
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


def make_start_keys(*, start: str | None = None, phase2: bool = False, until: int = -1) -> dict[str, Any]:
    """Return the configuration keys of a phase that starts at update 0.

    start: checkpoint from which weights and moments are taken, or None.
    phase2: True for phase 2.
    until: update of the phase after which the run stops. Negative: it runs to the end.
    """
    return {
        "phase2": phase2 and start is not None,
        "resume": False,
        "start_from_ckpt": start,
        "start_moments": start is not None,
        # the optimiser of NVIDIA's program counts its updates from 0 again
        "moments_updates": None if start is None else 0,
        "steps_this_run": max(1, until) if until >= 0 else None,
    }
