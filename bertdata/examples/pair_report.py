"""Describes and counts masked pairs of segments for the commands ``show`` and ``stats``."""

from typing import Any, NamedTuple

from bertdata.examples.counting import compute_ratio, convert_to_ints
from bertdata.examples.groups import (
    PAIR_LABEL,
    SEGMENT,
    find_column,
    find_mask_columns,
    get_pair_labels,
    get_segment_lengths,
)
from bertdata.examples.mask_report import MaskCounts, describe_masks
from bertdata.examples.objective import Findings, ObjectiveCounts, Totals, join_tokens
from bertdata.records import ExampleBatch, ShardLayout


class PairWords(NamedTuple):
    """Words that show the label of a pair.

    name: what the label is about.
    zero: word for the label 0.
    one: word for the label 1.
    section: name of the label's section in the JSON of ``stats``.
    """

    name: str
    zero: str
    one: str
    section: str


def describe_pair(
    example: Any,
    batch_type: type[ExampleBatch],
    pair_words: PairWords,
    words: list[str],
    mask_id: int | None,
    layout: ShardLayout,
) -> str:
    """Return a text that shows both segments of an example, and then a line for each mask.

    The line has the mask's position, what replaced the token, the original token and the random one.

    ::

        12 ids and 116 of padding, next sentence random, 2 masks
          A  [CLS] a lighthouse [MASK] a tower [SEP]
          B  its keeper kept bees [SEP]
          3   [MASK]  is
          9   random  kept -> stone

    batch_type: class of the example's batches, which says under which names the example stores its parts.
    pair_words: how to show the label of the pair.
    words: the token of each id.
    mask_id: the id of [MASK]. None if it is unknown.
    """
    first, label = (getattr(example, find_column(batch_type, group).one) for group in (SEGMENT, PAIR_LABEL))
    masks = find_mask_columns(batch_type)
    places, originals = getattr(example, masks.places.one), getattr(example, masks.originals.one)
    padding = layout.max_seq_length - len(example.ids)
    label_word = pair_words.one if label else pair_words.zero
    lines = [
        f"{len(example.ids)} ids and {padding} of padding, {pair_words.name} {label_word}, "
        f"{len(places)} masks",
        f"  A  {join_tokens(example.ids[:first], words)}",
        f"  B  {join_tokens(example.ids[first:], words)}",
        *describe_masks(example.ids, places, originals, words, mask_id),
    ]
    return "\n".join(lines) + "\n"


class PairCounts(ObjectiveCounts):
    """Counts of masks, of ids in segment A (with ``[CLS]`` and ``[SEP]``), and of pairs with the label 1."""

    def __init__(self, pair_words: PairWords) -> None:
        self._words = pair_words
        self._masks = MaskCounts()
        self._first_tokens = 0
        self._ones = 0

    def add(self, batch: Any) -> None:
        self._masks.add(batch)
        self._first_tokens += sum(convert_to_ints(get_segment_lengths(batch)))
        self._ones += sum(convert_to_ints(get_pair_labels(batch)))

    def merge(self, other: "PairCounts") -> None:
        self._masks.merge(other._masks)
        self._first_tokens += other._first_tokens
        self._ones += other._ones

    def findings(self, totals: Totals) -> Findings:
        masks, one = self._masks.findings(totals), self._words.one
        first, second = self._first_tokens, totals.tokens - self._first_tokens
        means = f"mean {first / totals.examples:.1f} and {second / totals.examples:.1f} tokens"
        rows = [
            ("  segments", f"{means}, [CLS] and [SEP] included"),
            (self._words.name, f"{self._ones / totals.examples:.2%} {one}"),
        ]
        sections = {
            "lengths": {
                "first_segment_mean": compute_ratio(first, totals.examples),
                "second_segment_mean": compute_ratio(second, totals.examples),
            },
            self._words.section: {
                name: part
                for word, count in ((one, self._ones), (self._words.zero, totals.examples - self._ones))
                for name, part in ((word, count), (f"{word}_share", compute_ratio(count, totals.examples)))
            },
        }
        return Findings(rows + masks.rows, sections | masks.sections)
