"""Configuration sections of a run: device and output, workers, and the starting point."""

import re
from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import require
from bertdata.io.storage import is_remote
from trainer.config.sections.section import Section, declare_common_key, declare_plugin_key

CHECKPOINT_SIGNALS = ("USR1", "USR2", "HUP", "QUIT", "URG", "CONT")
"""Signals on which a run may be configured to write a checkpoint. The first is the default."""

_DURATION = re.compile(r"^([0-9]*[1-9][0-9]*)(s|min|h)$")
"""Pattern of a time such as 15min."""
_UNIT_SECONDS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Keys about the device, the output directory, checkpoints and the length of a run."""

    do_train: bool = setting(True, "train; --no-do-train evaluates and predicts only")
    output_dir: str | None = declare_common_key(
        None, "directory for checkpoints and logs, on this machine or at a URL (s3://, gs://)"
    )
    overwrite_output_dir: bool = setting(
        False,
        "start again in an output_dir that has a run: its checkpoints are removed, its log tables renamed",
    )
    device: str = declare_plugin_key(
        "device",
        "auto",
        "device to run on: cpu, cuda, hpu, ipu, xla, or auto (an accelerator of this machine, else cpu)",
        "auto",
        common=True,
    )
    strategy: str = declare_plugin_key(
        "strategy",
        "auto",
        "how the devices share the model: replicated (a whole copy on each), sharded (weights and moments "
        "divided among them), pipelined (the layers divided into stages), or auto (replicated if the model "
        "fits on one device, else the fastest plan)",
        "auto",
        without=("whole_updates",),  # some devices choose this strategy themselves, but a user cannot
        common=True,
    )
    compile: bool | None = declare_common_key(
        None,
        "compile the model if the device supports it (default: yes when pre-training on cuda with Triton "
        "and a C compiler installed)",
    )
    compile_only: bool = setting(False, "compile the model for the device, then stop without training")
    deterministic: bool = setting(
        False, "use only deterministic kernels: slower, but every run gives the same bits"
    )
    profile: bool = setting(False, "write a profile of four updates to output_dir")
    steps_this_run: int | None = declare_common_key(
        None, "stop after this many updates in this run (default: when steps is reached)", least=1
    )
    checkpoint_every: int | str = declare_common_key(
        1000,
        "number of updates between checkpoints, or the time between them (15min, 2h, 90s); 0: only one "
        "checkpoint, at the end",
        least=0,
        by_phase=True,
    )
    keep_checkpoints: int = declare_common_key(5, "number of checkpoints to keep", least=1)
    keep_local_checkpoints: int = setting(
        2,
        "with a URL as output_dir: number of checkpoints to keep on this machine, in the cache "
        "(keep_checkpoints is the number at the URL)",
        least=1,
    )
    checkpoint_signal: str = setting(
        CHECKPOINT_SIGNALS[0],
        "signal that makes the run write a checkpoint and continue; TERM, HUP, Ctrl-C and others make it "
        "write a checkpoint and end",
        CHECKPOINT_SIGNALS,
    )

    def __post_init__(self) -> None:
        every = self.checkpoint_every
        require(
            not isinstance(every, str) or _DURATION.fullmatch(every) is not None,
            f"checkpoint_every is {every!r}, expected a number of updates, or a time such as 15min or 2h",
        )
        super().__post_init__()

    @property
    def updates_between_checkpoints(self) -> int:
        """Number of updates between two checkpoints. 0 if a time is set, or only the last one is written."""
        return self.checkpoint_every if isinstance(self.checkpoint_every, int) else 0

    @property
    def seconds_between_checkpoints(self) -> float | None:
        """Seconds between two checkpoints, or None if updates count."""
        if isinstance(self.checkpoint_every, int):
            return None
        found = _DURATION.fullmatch(self.checkpoint_every)
        assert found is not None
        return int(found[1]) * _UNIT_SECONDS[found[2]]

    def list_idle_keys(self) -> list[str]:
        """Return the key that has no effect if output_dir is on this machine."""
        return (
            [] if self.output_dir is not None and is_remote(self.output_dir) else ["keep_local_checkpoints"]
        )


@dataclass(frozen=True, kw_only=True)
class WorkersSection(Section):
    """Keys about the workers of a run and how they average their gradients."""

    dist: bool = declare_common_key(
        False, "start world_size workers on this machine, unless a launcher such as torchrun started them"
    )
    world_size: int | None = declare_common_key(
        None,
        "number of workers that the run must have; any other number of started workers is an error "
        "(default: any)",
        least=1,
    )
    collective: str | None = declare_plugin_key(
        "collective", None, "library that connects the workers (default: the launcher's)"
    )
    allreduce_post_accumulation: bool = setting(
        True, "average gradients over the workers once per update, not once per micro-batch"
    )
    allreduce_post_accumulation_fp16: bool = setting(False, "average gradients over the workers in 16 bits")
    force_weight_sync: bool = setting(False, "average the weights over the workers before each update")

    def __post_init__(self) -> None:
        super().__post_init__()
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        require(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")


@dataclass(frozen=True, kw_only=True)
class StartSection(Section):
    """Keys about what a run starts from: random weights, the end of phase 1, a checkpoint, or an interrupted
    run.
    """

    phase2: bool = declare_common_key(
        False, "train phase 2 from phase 1's weights and moments; the step count and the schedule restart"
    )
    phase1_end_step: int | None = setting(
        None, "step of the phase 1 checkpoint to continue from (default: the last)", least=0
    )
    start_from_ckpt: str | None = declare_common_key(
        None, "checkpoint with the initial weights, from this trainer or another program"
    )
    start_moments: bool = setting(
        False, "also load the optimiser's moments from start_from_ckpt; updates and schedule start at 0"
    )
    moments_updates: int | None = setting(
        None,
        "number of updates over which the moments of start_moments were averaged, for the bias correction "
        "(default: the checkpoint's number)",
        least=0,
    )
    resume_from: str | None = declare_common_key(
        None,
        "checkpoint, or run, to continue from in a new output_dir, for example with another number of steps",
    )
    resume: bool = declare_common_key(False, "continue from the last checkpoint in output_dir")
    resume_skips_damaged: bool = setting(
        False,
        "with resume: skip damaged or truncated checkpoints and continue from the newest intact one, which "
        "is then read twice; meant for job scripts",
    )
    resume_step: int | None = setting(
        None, "step of the checkpoint to resume from or to evaluate (default: the last)", least=0
    )

    def list_idle_keys(self) -> list[str]:
        """Return the key that has no effect without ``resume``."""
        return [] if self.resume else ["resume_skips_damaged"]

    def count_moment_updates(self, stored: int | None) -> int:
        """Return the number of updates over which the optimiser moments of start_from_ckpt were accumulated.

        It is the value of the key moments_updates, or else the number that the checkpoint stores.

        stored: number of updates that the checkpoint stores, or None if it stores no number.
        """
        return self.moments_updates if self.moments_updates is not None else stored or 0

    @property
    def continues_here(self) -> bool:
        """True if the run continues from a run in its output directory."""
        return self.resume or self.resume_step is not None or self.phase2

    @property
    def is_continued(self) -> bool:
        """True if the initial weights come from a checkpoint, in the output directory or elsewhere."""
        elsewhere = self.start_from_ckpt or self.start_moments or self.resume_from
        return self.continues_here or bool(elsewhere)
