"""Section of evaluations between updates."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.sections.section import Section, shown


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
