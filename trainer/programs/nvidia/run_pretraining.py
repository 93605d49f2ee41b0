"""NVIDIA's run_pretraining.py for PyTorch: one phase of pre-training on GPUs.

A launcher starts a process for each GPU; --train_batch_size is what one of them trains in an update. The
flags of the commit, and --amp and --steps_this_run of later ones, are read. The program adds the local
rank, -1 without a launcher, to its seed; here each worker derives its own from the same seed.
"""

import math
from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.constants import NVLAMB, micro_batch
from trainer.programs.flag_tables import idle_flags, own_flags, phase_keys
from trainer.programs.program import Meaning, Program
from trainer.workers.launchers import find_rank

LARGEST_SCALE = 2.0**24
"""The loss scale that apex does not raise its own above."""

ONE_GPU = "without a launcher the program uses all visible GPUs, here one: torchrun starts more"
"""A warning where the environment tells of one process."""

FLAGS = [
    Flag("--input_dir", required=True, key="train_data", meaning='.hdf5 files with "training" in the name'),
    Flag("--config_file", required=True, key="model_config", meaning="bert_config.json, the model's shape"),
    *idle_flags("--config_file gives the shape", str, "--bert_model=bert-large-uncased"),
    *own_flags(str, "--output_dir", required=True),
    *own_flags(int, "--max_seq_length=512 --max_predictions_per_seq=80"),
    *own_flags(SWITCH, "--allreduce_post_accumulation"),
    *own_flags(str, "--json-summary=results/dllogger.json"),
    Flag("--init_checkpoint", meaning="with --resume_from_checkpoint: weights and moments to start from"),
    Flag("--train_batch_size", int, 32, "examples of an update of one worker"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    *idle_flags("--max_steps gives the length", float, "--num_train_epochs=3"),
    Flag("--max_steps", float, 1000, "updates"),
    Flag("--warmup_proportion", float, 0.01, "warm-up as a share of the updates", key="warmup"),
    *idle_flags("the launcher's environment tells it", int, "--local_rank=-1"),
    Flag("--seed", int, 42, "seed; the program adds a worker's number, here all have one", key="seed"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches that train_batch_size is divided into"),
    Flag("--fp16", SWITCH, meaning="16 bits (apex O2) on CUDA"),
    Flag("--amp", SWITCH, meaning="the same as --fp16"),
    Flag("--loss_scale", float, 0.0, "fixed loss scale of 16 bits; 0: adjusted", key="loss_scaling"),
    Flag("--init_loss_scale", int, 2**20, "initial value of an adjusted loss scale"),
    Flag("--log_freq", float, 1.0, "updates between two log lines"),
    Flag("--checkpoint_activations", SWITCH,
         meaning="compute activations again in the backward pass, where a plan divides the model"),
    Flag("--resume_from_checkpoint", SWITCH, meaning="continue from output_dir, or from --init_checkpoint"),
    Flag("--resume_step", int, -1, "checkpoint to continue, counted over both phases; -1: the last"),
    Flag("--num_steps_per_checkpoint", int, 100, "updates between two checkpoints", key="checkpoint_every"),
    Flag("--skip_checkpoint", SWITCH, meaning="save no checkpoints; here: only at the end"),
    Flag("--phase2", SWITCH,
         meaning="with --resume_from_checkpoint: continue phase 1, or phase 2 where it has begun"),
    Flag("--allreduce_post_accumulation_fp16", SWITCH, meaning="that all-reduce in 16 bits"),
    Flag("--phase1_end_step", int, 7038, "the last checkpoint of phase 1"),
    Flag("--do_train", SWITCH, meaning="train; the program refuses to do nothing"),
    *idle_flags("the rank is always the environment's", SWITCH, "--use_env"),
    Flag("--disable_progress_bar", SWITCH, key="no_progress_bar", meaning="print plain lines"),
    Flag("--steps_this_run", int, -1, "stop at this update of the phase; -1: at max_steps"),
]  # fmt: skip
"""The flags that Habana's program, which follows this one, has too."""

_LATER_FLAGS = [
    *FLAGS,
    Flag("--vocab_file", required=True, key="vocab", meaning="vocabulary"),
    *own_flags(SWITCH, "--profile"),
    *idle_flags("a profile is of the first updates", int, "--profile-start=0"),
    *idle_flags("processes that read the data", int, "--num_workers=4"),
    *idle_flags("only masked positions have scores", SWITCH, "--no_dense_sequence_output"),
    *idle_flags("", SWITCH, "--disable_jit_fusions"),
    Flag("--cuda_graphs", SWITCH, meaning="compile the model and run it as CUDA graphs"),
]
"""The flags of a later commit, whose data are LDDL's."""


def resolve(given: Given) -> Meaning:
    """The phase that the command line trains."""
    keys = phase_of(given) | {
        "device": "cuda",
        "gelu": "tanh",
        "allreduce_post_accumulation_fp16": given["allreduce_post_accumulation"]
        and given["allreduce_post_accumulation_fp16"],
        "recompute": "always" if given["checkpoint_activations"] else "auto",
        "log_every": max(1, int(given["log_freq"])),
    }
    if given.version and given["cuda_graphs"]:
        keys["device_options"] = {"cuda_graphs": True}
    if keys["world_size"] == 1 and not given.version:
        given.warn(ONE_GPU)
    if given["loss_scale"] and not given.version:
        given.warn("--loss_scale is kept; the program overwrites it with --init_loss_scale")
    return Meaning(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def phase_of(given: Given) -> dict[str, Any]:
    """The keys that this program and Habana's give a phase by the same flags."""
    count, scale = given["gradient_accumulation_steps"], float(given["init_loss_scale"])
    size = micro_batch(given["train_batch_size"], count)
    if not given["do_train"]:
        raise UsageError("`do_train` must be True.")
    keys = NVLAMB | phase_keys(given) | _start(given)
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
    """The start of the phase. Without --resume_from_checkpoint it has none."""
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
    """The number of the last checkpoint in a run's directory, over both phases, or 0 where there is none."""
    if not storage.is_directory(storage.join(output_dir, "checkpoints")):
        return 0
    from trainer.checkpoints.checkpoint import find_checkpoints  # imports torch

    return max(find_checkpoints(output_dir), default=0)


def continued(
    output_dir: str, *, phase1_end_step: int | None, resume_step: int | None = None, until: int = -1
) -> dict[str, Any]:
    """The keys of --resume_from_checkpoint alone: what is in output_dir is continued.

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
    """The keys of a phase that begins at update 0, from random weights or a checkpoint with its moments."""
    return {
        "phase2": phase2 and start is not None,
        "resume": False,
        "start_from_ckpt": start,
        "start_moments": start is not None,
        "steps_this_run": max(1, until) if until >= 0 else None,
    }


PROGRAM = Program(
    "nvidia/run_pretraining.py", {"": FLAGS}, resolve, versions={"a9e2c1d5": {"": _LATER_FLAGS}}
)
