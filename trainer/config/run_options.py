"""Sections of what only some runs have: several workers, a start, evaluations, further logs."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check, shown


@dataclass(frozen=True, kw_only=True)
class WorkersSection(Section):
    """Several workers of one run, and the averages of their gradients."""

    dist: bool = shown(False, "start world_size workers on this machine, unless a launcher has started them")
    world_size: int | None = shown(None, "expected number of workers (default: any)", least=1)
    collective: str | None = setting(
        None,
        "communication between workers (default: the launcher's)",
        ("single", "torch_distributed", "horovod", "poprun"),
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
    resume_from: str | None = shown(
        None,
        "checkpoint to resume from, or run, in an output_dir of one's own: a branch, with other steps say",
    )
    resume: bool = shown(False, "continue from the last checkpoint in output_dir")
    resume_step: int | None = setting(None, "update to resume at (default: the last checkpoint's)", least=0)

    @property
    def continues_here(self) -> bool:
        """True if the output directory holds the run that this one goes on with."""
        return self.resume or self.resume_step is not None or self.phase2

    @property
    def is_continued(self) -> bool:
        """True if a run is to begin with the weights of a checkpoint."""
        elsewhere = self.start_from_ckpt or self.start_moments or self.resume_from
        return self.continues_here or bool(elsewhere)


@dataclass(frozen=True, kw_only=True)
class EvaluationSection(Section):
    """Evaluations between updates, on the data of eval_data."""

    eval_every: int | None = shown(
        None, "updates between two evaluations; 0: only at the end (default: MLPerf's rule)", least=0
    )
    eval_examples: int | None = setting(
        None, "largest number of examples to evaluate on (default: all)", least=1
    )
    eval_batch_size: int | None = setting(
        None, "examples of one evaluation batch (default: batch_size)", least=1, by_phase=True
    )
    target_accuracy: float | None = shown(
        None,
        "masked_lm_accuracy at which the run ends; in fine-tuning the last of the metrics, F1 as a "
        "share of 1",
        above=0,
        most=1,
    )

    def interval(self, batch: int) -> int:
        """Examples trained between two evaluations, by eval_every or MLPerf's rule. 0: only at the end.

        batch: the examples of an update.
        """
        if self.eval_every is not None:
            return self.eval_every * batch
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000


@dataclass(frozen=True, kw_only=True)
class LoggersSection(Section):
    """Logs beside those that every run writes."""

    curves: bool = shown(
        False, "draw loss and accuracy when all updates are made: curves.svg and curves.png in output_dir"
    )
    tensorboard: bool = shown(False, "write TensorBoard's event files")
    wandb: bool = shown(False, "report to Weights & Biases")
    wandb_offline: bool = setting(False, "write Weights & Biases' files without using the network")
    wandb_project: str = setting("bertdata", "project in Weights & Biases", keywords={"minLength": 1})
    mllog: bool = setting(False, "write MLPerf's log lines to output_dir/mllog.txt")
