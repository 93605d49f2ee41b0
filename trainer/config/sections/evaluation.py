"""Configuration section of the evaluations during training."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import require
from trainer.config.sections.section import Section, declare_common_key


@dataclass(frozen=True, kw_only=True)
class EvaluationSection(Section):
    """Keys about the evaluations between updates, on the data of eval_data."""

    eval_every: int | None = declare_common_key(
        None,
        "number of updates between evaluations; 0: evaluate only at the end (default: as often as "
        "MLPerf's rules say)",
        least=0,
    )
    eval_examples: int | None = setting(
        None, "evaluate on at most this many examples (default: all)", least=1
    )
    eval_batch_size: int | None = setting(
        None, "examples in an evaluation batch (default: batch_size)", least=1, by_phase=True
    )
    target_accuracy: float | None = declare_common_key(
        None,
        "end the run when an evaluation reaches this masked_lm_accuracy or, in fine-tuning, this value of "
        "the task's last metric (F1 counts from 0 to 1)",
        above=0,
        most=1,
    )

    keep_best: str | None = declare_common_key(
        None,
        "result of the evaluations, such as acc, f1 or loss: also keep the checkpoint for which it is best "
        "(lowest for a loss, else highest); predict, convert, evaluate and start_from_ckpt take this "
        "checkpoint of the run",
    )
    patience: int | None = declare_common_key(
        None,
        "end the run after this many evaluations without a better value of keep_best (default: never)",
        least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.patience is None or self.keep_best is not None, "patience needs keep_best")

    def interval(self, batch: int) -> int:
        """Return the number of examples to train on between two evaluations. 0 means to evaluate only at the
        end.

        If eval_every is not set, the number follows MLPerf's rule: ``floor(0.05 * (230.23 * batch +
        3,000,000) / 25,000) * 25,000``.
        batch: examples per update, over all workers.
        """
        if self.eval_every is not None:
            return self.eval_every * batch
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000
