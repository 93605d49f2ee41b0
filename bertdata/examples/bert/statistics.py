"""Statistics of BERT's examples: segments, next sentences, masks."""

from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.counting import plain, ratio
from bertdata.examples.mask_report import MaskCounts
from bertdata.examples.objective import Findings, ObjectiveCounts, Totals


class BertCounts(ObjectiveCounts):
    """Masks, ids of segment A (``[CLS]`` and the first ``[SEP]`` included), random next sentences."""

    def __init__(self) -> None:
        self._masks = MaskCounts()
        self._first_tokens = 0
        self._random_next = 0

    def add(self, batch: BertBatch) -> None:
        self._masks.add(batch)
        self._first_tokens += sum(plain(batch.first_lengths))
        self._random_next += sum(plain(batch.next_labels))

    def merge(self, other: "BertCounts") -> None:
        self._masks.merge(other._masks)
        self._first_tokens += other._first_tokens
        self._random_next += other._random_next

    def findings(self, totals: Totals) -> Findings:
        masks = self._masks.findings(totals)
        first, second = self._first_tokens, totals.tokens - self._first_tokens
        means = f"mean {first / totals.examples:.1f} and {second / totals.examples:.1f} tokens"
        rows = [
            ("  segments", f"{means}, [CLS] and [SEP] included"),
            ("next sentence", f"{self._random_next / totals.examples:.2%} random"),
        ]
        sections = {
            "lengths": {
                "first_segment_mean": ratio(first, totals.examples),
                "second_segment_mean": ratio(second, totals.examples),
            },
            "next_sentences": {
                "random": self._random_next,
                "random_share": ratio(self._random_next, totals.examples),
            },
        }
        return Findings(rows + masks.rows, sections | masks.sections)
