"""The objective of SQuAD: find the answer to a question in a context."""

from typing import Any

from bertdata.examples.counting import compute_ratio, convert_to_ints
from bertdata.examples.fine_tuning import FineTuningObjective, describe_segments
from bertdata.examples.objective import Findings, ObjectiveCounts, Totals, join_tokens
from bertdata.examples.squad.batch import SquadBatch
from bertdata.records import ShardLayout
from schemas import load_schema


class SquadCounts(ObjectiveCounts):
    """Counts of examples that contain the whole answer, of the answers' tokens, and of questions without an
    answer.
    """

    def __init__(self) -> None:
        self._answered = 0
        self._answer_tokens = 0
        self._impossible = 0

    def add(self, batch: SquadBatch) -> None:
        for start, end in zip(
            convert_to_ints(batch.answer_starts), convert_to_ints(batch.answer_ends), strict=True
        ):
            if end > 0:
                self._answered += 1
                self._answer_tokens += end - start + 1
        self._impossible += sum(convert_to_ints(batch.impossible))

    def merge(self, other: "SquadCounts") -> None:
        self._answered += other._answered
        self._answer_tokens += other._answer_tokens
        self._impossible += other._impossible

    def findings(self, totals: Totals) -> Findings:
        mean = compute_ratio(self._answer_tokens, self._answered)
        rows = [
            ("with answer", f"{self._answered} of {totals.examples}, mean {mean:.1f} tokens"),
            ("impossible", f"{self._impossible}"),
        ]
        section = {"with_answer": self._answered, "mean_tokens": mean, "impossible": self._impossible}
        return Findings(rows, {"answers": section})


class SquadObjective(FineTuningObjective):
    """SQuAD's objective: predict the positions of an answer's first and last token."""

    batch_type = SquadBatch
    task = "squad"

    def counts(self) -> SquadCounts:
        return SquadCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return a text with a line for the tokens of each segment, and then the answer."""
        padding = layout.max_seq_length - len(example.ids)
        start, end = example.answer_start, example.answer_end
        answer = f"answer {start} to {end}  {join_tokens(example.ids[start : end + 1], words)}"
        lines = [
            f"{len(example.ids)} ids and {padding} of padding",
            *describe_segments(example.ids, example.first_length, words),
            f"  {answer if end else 'impossible' if example.impossible else 'no answer in this span'}",
        ]
        return "\n".join(lines) + "\n"


SQUAD = SquadObjective("squad", load_schema("example")["squad"])
