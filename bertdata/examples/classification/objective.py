"""The objectives of predicting a label and of predicting a score."""

from collections import Counter
from typing import Any

from bertdata.examples.classification.batch import LabelledBatch, ScoredBatch
from bertdata.examples.counting import compute_ratio, convert_to_ints
from bertdata.examples.fine_tuning import FineTuningObjective, describe_segments
from bertdata.examples.objective import Findings, ObjectiveCounts, Totals
from bertdata.records import ShardLayout
from schemas import load_schema


class LabelCounts(ObjectiveCounts):
    """Counts of the examples by their label."""

    def __init__(self) -> None:
        self._labels = Counter[int]()

    def add(self, batch: LabelledBatch) -> None:
        self._labels.update(convert_to_ints(batch.label_ids))

    def merge(self, other: "LabelCounts") -> None:
        self._labels += other._labels

    def findings(self, totals: Totals) -> Findings:
        counts = sorted(self._labels.items())
        rows = [
            (f"label {label}", f"{count} ({compute_ratio(count, totals.examples):.1%})")
            for label, count in counts
        ]
        return Findings(rows, {"labels": {str(label): count for label, count in counts}})


class ClassificationObjective(FineTuningObjective):
    """Objective of fine-tuning examples with labels: predict the label of an example."""

    batch_type = LabelledBatch
    task = "classification"

    def counts(self) -> LabelCounts:
        return LabelCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return a text with the example's label, and then a line with the tokens of each segment."""
        padding = layout.max_seq_length - len(example.ids)
        lines = describe_segments(example.ids, example.first_length, words)
        return "\n".join(
            [f"{len(example.ids)} ids and {padding} of padding, label {example.label}", *lines, ""]
        )


class RegressionObjective(FineTuningObjective):
    """Objective of fine-tuning examples with scores: predict the score of an example."""

    batch_type = ScoredBatch
    task = "classification"

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return a text with the example's score, and then a line with the tokens of each segment."""
        padding = layout.max_seq_length - len(example.ids)
        lines = describe_segments(example.ids, example.first_length, words)
        return "\n".join(
            [f"{len(example.ids)} ids and {padding} of padding, score {example.score:g}", *lines, ""]
        )


CLASSIFICATION = ClassificationObjective("classification", load_schema("example")["classification"])
REGRESSION = RegressionObjective("regression", load_schema("example")["regression"])
