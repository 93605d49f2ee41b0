"""The objective of ELECTRA. Its examples are stored without masks."""

from typing import Any

from bertdata._native import Engine
from bertdata.examples.counting import compute_ratio, compute_sizes, convert_to_ints
from bertdata.examples.electra.batch import ElectraBatch
from bertdata.examples.electra.make import ElectraMaker
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.fine_tuning import describe_segments
from bertdata.examples.objective import Findings, Objective, ObjectiveCounts, RunMaker, Totals
from bertdata.records import Documents, MadeExamples, ShardLayout, Vocabulary
from schemas import load_schema


class ElectraCounts(ObjectiveCounts):
    """Counts of the ids in segment A (with ``[CLS]`` and ``[SEP]``), and of the examples that have no segment
    B.
    """

    def __init__(self) -> None:
        self._first_tokens = self._one_segment = 0

    def add(self, batch: Any) -> None:
        first = convert_to_ints(batch.first_lengths)
        self._first_tokens += sum(first)
        self._one_segment += sum(
            a == b for a, b in zip(first, compute_sizes(convert_to_ints(batch.ends)), strict=True)
        )

    def merge(self, other: "ElectraCounts") -> None:
        self._first_tokens += other._first_tokens
        self._one_segment += other._one_segment

    def findings(self, totals: Totals) -> Findings:
        first, second = self._first_tokens, totals.tokens - self._first_tokens
        means = f"mean {first / totals.examples:.1f} and {second / totals.examples:.1f} tokens"
        rows = [
            ("  segments", f"{means}, [CLS] and [SEP] included"),
            ("one segment", f"{self._one_segment / totals.examples:.2%}"),
        ]
        sections = {
            "lengths": {
                "first_segment_mean": compute_ratio(first, totals.examples),
                "second_segment_mean": compute_ratio(second, totals.examples),
            },
            "one_segment": {
                "examples": self._one_segment,
                "share": compute_ratio(self._one_segment, totals.examples),
            },
        }
        return Findings(rows, sections)


class ElectraObjective(Objective):
    """ELECTRA's objective: unmasked examples of one or two segments. The trainer has no task for it."""

    settings_type = ElectraSettings
    batch_type = ElectraBatch

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> MadeExamples:
        return ElectraMaker(vocabulary, settings, engine).make(documents)

    def run_maker(
        self, inputs: int, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> RunMaker:
        return ElectraMaker(vocabulary, settings, engine, inputs)

    def counts(self) -> ElectraCounts:
        return ElectraCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return a text with the example's size, and then a line with the tokens of each segment.

        ::

            12 ids and 116 of padding
              A  [CLS] a lighthouse is a tower [SEP]
              B  its keeper kept bees [SEP]
        """
        padding = layout.max_seq_length - len(example.ids)
        lines = describe_segments(example.ids, example.first_length, words)
        return "\n".join([f"{len(example.ids)} ids and {padding} of padding", *lines, ""])


ELECTRA = ElectraObjective("electra", load_schema("example")["electra"])
