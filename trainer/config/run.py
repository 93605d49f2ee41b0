"""Section of a run: output directory, device, workers, phases, resume, checkpoints, evaluation."""

from dataclasses import dataclass

from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class RunSection(Section):
    """Device and workers of a run, its start, its output, its evaluations and its end."""

    do_train: bool = True
    output_dir: str | None = None
    device: str = "auto"
    strategy: str = "auto"
    dist: bool = False  # start world_size workers on this machine
    world_size: int | None = None  # None: any
    collective: str | None = None  # None: the launcher's
    compile: bool | None = None  # None: as the device does
    compile_only: bool = False
    deterministic: bool = False
    profile: bool = False
    steps_this_run: int | None = None  # None: all that are left
    phase2: bool = False
    phase1_end_step: int | None = None  # None: phase 1's last checkpoint
    start_from_ckpt: str | None = None  # weights only, unless start_moments
    start_moments: bool = False
    resume: bool = False
    resume_step: int | None = None  # None: the last checkpoint
    checkpoint_every: int = 1000  # updates; 0: only at the end
    keep_checkpoints: int = 5
    eval_every: int | None = None  # updates; 0: only at the end; None: MLPerf's rule
    eval_examples: int | None = None  # None: all
    eval_batch_size: int | None = None  # None: batch_size
    target_accuracy: float | None = None
