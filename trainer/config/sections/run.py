"""Sections of a run: device and output, its workers, what it starts from."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import check
from trainer.config.sections.section import Section, named, shown

CHECKPOINT_SIGNALS = ("USR1", "USR2", "HUP", "QUIT", "URG", "CONT")
"""The signals that may ask for a checkpoint, the usual one first."""


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Device and workers of a run, its output and its end."""

    do_train: bool = setting(True, "false: do not train")
    output_dir: str | None = shown(None, "directory for checkpoints and logs")
    overwrite_output_dir: bool = setting(
        False, "begin anew where output_dir has a run: its checkpoints are removed, its tables renamed"
    )
    device: str = named(
        "device",
        "auto",
        "device to train on: cpu, cuda, hpu, ipu, xla, or auto: the accelerator that is there, else cpu",
        "auto",
        common=True,
    )
    strategy: str = named(
        "strategy",
        "auto",
        "division of an update over the devices: replicated (the whole model on each), sharded (weights "
        "and moments divided among them), pipelined (the layers divided into stages), or auto: "
        "replicated where that fits, else the fastest plan",
        "auto",
        without=("whole_updates",),  # a device's own
        common=True,
    )
    compile: bool | None = shown(
        None,
        "compile the model where the device can (default: in pre-training on cuda, with Triton and a C "
        "compiler)",
    )
    compile_only: bool = setting(False, "compile for the device and stop")
    deterministic: bool = setting(False, "use deterministic kernels only: slower, the same bits in every run")
    profile: bool = setting(False, "record a profile of four updates in output_dir")
    steps_this_run: int | None = shown(None, "stop after this many updates (default: at steps)", least=1)
    checkpoint_every: int = shown(
        1000, "updates between two checkpoints; 0: only at the end", least=0, by_phase=True
    )
    keep_checkpoints: int = shown(5, "number of checkpoints to keep", least=1)
    checkpoint_signal: str = setting(
        CHECKPOINT_SIGNALS[0],
        "signal that asks for a checkpoint now, after which training goes on; TERM, HUP, Ctrl-C and others "
        "end it with a checkpoint",
        CHECKPOINT_SIGNALS,
    )


@dataclass(frozen=True, kw_only=True)
class WorkersSection(Section):
    """Several workers of one run, and the averages of their gradients."""

    dist: bool = shown(False, "start world_size workers on this machine, unless a launcher has started them")
    world_size: int | None = shown(None, "expected number of workers (default: any)", least=1)
    collective: str | None = named(
        "collective", None, "communication between workers (default: the launcher's)"
    )
    allreduce_post_accumulation: bool = setting(True, "all-reduce once an update, not once a micro-batch")
    allreduce_post_accumulation_fp16: bool = setting(False, "all-reduce in 16 bits")
    force_weight_sync: bool = setting(False, "average the weights over the workers before each update")

    def __post_init__(self) -> None:
        super().__post_init__()
        post, halves = self.allreduce_post_accumulation, self.allreduce_post_accumulation_fp16
        check(post or not halves, "allreduce_post_accumulation_fp16 needs allreduce_post_accumulation")


@dataclass(frozen=True, kw_only=True)
class StartSection(Section):
    """The weights, moments and updates that a run begins with, where it does not begin anew."""

    phase2: bool = shown(False, "continue from phase 1's weights and moments; steps and schedule restart")
    phase1_end_step: int | None = setting(
        None, "phase 1's checkpoint to continue from (default: its last)", least=0
    )
    start_from_ckpt: str | None = shown(None, "checkpoint of any program to take the initial weights from")
    start_moments: bool = setting(
        False, "take the moments of start_from_ckpt too; updates and schedule begin at 0"
    )
    moments_updates: int | None = setting(
        None,
        "updates that start_moments counts as made, for the bias correction (default: the checkpoint's "
        "number)",
        least=0,
    )
    resume_from: str | None = shown(
        None,
        "checkpoint to resume from, or run, in an output_dir of one's own: a branch, with other steps say",
    )
    resume: bool = shown(False, "continue from the last checkpoint in output_dir")
    resume_skips_damaged: bool = setting(
        False,
        "with resume: pass over checkpoints that are damaged or cut, and continue from the newest whole one, "
        "which reads it twice; for the script of a job",
    )
    resume_step: int | None = setting(None, "update to resume at (default: the last checkpoint's)", least=0)

    def idle(self) -> list[str]:
        """The key that counts for a resume, where there is none."""
        return [] if self.resume else ["resume_skips_damaged"]

    def updates_of_moments(self, stored: int | None) -> int:
        """The updates that the moments of start_from_ckpt count as. stored: the checkpoint's number."""
        return self.moments_updates if self.moments_updates is not None else stored or 0

    @property
    def continues_here(self) -> bool:
        """True if the output directory holds the run that this one goes on with."""
        return self.resume or self.resume_step is not None or self.phase2

    @property
    def is_continued(self) -> bool:
        """True if a run is to begin with the weights of a checkpoint."""
        elsewhere = self.start_from_ckpt or self.start_moments or self.resume_from
        return self.continues_here or bool(elsewhere)
