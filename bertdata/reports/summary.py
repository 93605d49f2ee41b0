"""Statistics of a dataset: lengths, padding, sizes of the shards, and what its objective counts.

All examples are counted. The manifest lists the shards, and the counts must agree with it. The numbers of
[UNK] tokens and of tokens that are in no example come only from the manifest. They refer to the input text,
in which each token counts once.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertdata.dataset.discover import FoundDataset, FoundShard
from bertdata.dataset.manifest import count_unknown_tokens
from bertdata.errors import ShardError, UsageError
from bertdata.examples.counting import compute_ratio, describe_distribution, round_decimals, sum_weighted
from bertdata.examples.objective import Findings, Totals
from bertdata.examples.objectives import find_objective
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.records import ShardLayout
from bertdata.reports.shard_counts import ShardCounts, count_shard, sum_counters
from bertdata.shards.measured_sizes import share_largest_sizes

_BINS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthHistogram:
    """Number of examples by length.

    Bin i holds lengths ``i * bin_tokens + 1`` to ``(i + 1) * bin_tokens``.
    """

    bin_tokens: int
    examples: tuple[int, ...]


class Statistics:
    """Statistics of one dataset, which are computed from counts over its shards.

    Raises ShardError if there is no example.
    """

    def __init__(self, dataset: FoundDataset, counts: list[ShardCounts], mask_id: int | None = None) -> None:
        self.path, self.title = dataset.path, dataset.title
        self.shards = sorted(counts, key=lambda shard: shard.name)
        self.layout = _find_common_layout(self.shards, dataset.path)
        self.lengths = sum_counters(shard.lengths for shard in self.shards)
        self.packs = sum_counters(shard.packs for shard in self.shards)
        self.examples = self.lengths.total()
        self.tokens = sum_weighted(self.lengths)
        settings = dataset.manifest.plan.settings.by_name if dataset.manifest else {}
        self.findings = self._find_objective_statistics(settings, mask_id)
        self.input_tokens, self.unknown_tokens = _count_input_tokens(dataset)
        self.lost_tokens = dataset.manifest.lost_tokens if dataset.manifest else None

    def _find_objective_statistics(self, settings: Mapping[str, Any], mask_id: int | None) -> Findings:
        """Return the statistics that the objective computes from all shards."""
        own = find_objective(self.layout.objective).counts()
        for shard in self.shards:
            if shard.examples:
                own.merge(shard.own)
        return own.findings(
            Totals(
                layout=self.layout,
                examples=self.examples,
                tokens=self.tokens,
                mask_id=mask_id,
                settings=settings,
            )
        )

    @property
    def padding(self) -> float:
        """Share of the positions in all rows that are padding."""
        return 1 - self.tokens / (self.rows * self.layout.max_seq_length)

    @property
    def rows(self) -> int:
        """Number of rows of ``max_seq_length`` positions. Without packing, each example is a row."""
        return self.packs.total() or self.examples

    @property
    def unknown_share(self) -> float | None:
        """Share of [UNK] among the tokens of the input text.

        It is None if the manifest does not have the number.
        """
        if self.unknown_tokens is None or not self.input_tokens:
            return None
        return self.unknown_tokens / self.input_tokens

    @property
    def lost_share(self) -> float | None:
        """Share of the tokens of the input text that are in no example.

        It is None if these tokens were not counted.
        """
        if self.lost_tokens is None or not self.input_tokens:
            return None
        return self.lost_tokens / self.input_tokens

    @property
    def imbalance(self) -> float:
        """Number of tokens in the largest shard, divided by the mean of all shards, minus 1.

        It is 0 if all shards are equally large.
        """
        tokens = [shard.tokens for shard in self.shards]
        return max(tokens) * len(tokens) / sum(tokens) - 1

    def histogram(self, bins: int = _BINS) -> LengthHistogram:
        """Return the histogram of lengths with at most this many bins."""
        return make_histogram(self.lengths, self.layout.max_seq_length, bins)

    def as_json(self) -> dict[str, Any]:
        """Return all statistics in the form that ``stats --json`` prints."""
        return {
            "path": self.path,
            "title": self.title,
            "objective": self.layout.objective,
            "max_seq_length": self.layout.max_seq_length,
            "max_predictions_per_seq": self.layout.max_predictions_per_seq,
            **dict(self.layout.sizes),
            "shards": len(self.shards),
            "bytes": sum(shard.bytes for shard in self.shards),
            "examples": self.examples,
            "tokens": self.tokens,
            "padding_share": round_decimals(self.padding),
            "input_tokens": self.input_tokens,
            "unknown_tokens": self.unknown_tokens,
            "unknown_share": None if self.unknown_share is None else round_decimals(self.unknown_share),
            "lost_tokens": self.lost_tokens,
            "lost_share": None if self.lost_share is None else round_decimals(self.lost_share),
            **self._make_packing_json(),
            **self._make_sections_json(),
            "tokens_per_shard": self._make_balance_json(),
            "shard_list": [
                {
                    name: getattr(shard, name)
                    for name in ("name", "bytes", "examples", "tokens", "masked_tokens")
                }
                for shard in self.shards
            ],
        }

    def _make_packing_json(self) -> dict[str, Any]:
        """Return the part of the JSON about packed rows. It is empty if the examples are not packed."""
        if self.layout.packing is None:
            return {}
        packing = {
            "layout": self.layout.packing,
            "rows": self.rows,
            "most_sequences_per_row": self.layout.sequences_per_row,
            "sequences_per_row": compute_ratio(self.examples, self.rows),
            "rows_by_sequences": {str(sequences): self.packs[sequences] for sequences in sorted(self.packs)},
            "efficiency": compute_ratio(self.tokens, self.rows * self.layout.max_seq_length),
        }
        return {"packing": packing}

    def _make_sections_json(self) -> dict[str, Any]:
        """Return the parts of the JSON about lengths and about the statistics of the objective.

        The objective may also add numbers to the part about lengths.
        """
        own = self.findings.sections
        lengths = {
            **describe_distribution(self.lengths),
            "full_share": compute_ratio(self.lengths[self.layout.max_seq_length], self.examples),
            **own.get("lengths", {}),
            "histogram": asdict(self.histogram()),
        }
        return {"lengths": lengths, **{name: section for name, section in own.items() if name != "lengths"}}

    def _make_balance_json(self) -> dict[str, Any]:
        """Return the part of the JSON about differences in size between the shards."""
        tokens = [shard.tokens for shard in self.shards]
        return {
            "min": min(tokens),
            "mean": compute_ratio(self.tokens, len(tokens)),
            "max": max(tokens),
            "imbalance": round_decimals(self.imbalance),
        }


def make_histogram(lengths: Mapping[int, int], limit: int, bins: int = _BINS) -> LengthHistogram:
    """Return the histogram of lengths up to ``limit``, with at most this many bins of equal width."""
    width = -(-limit // bins)
    counts = [0] * -(-limit // width)
    for length, examples in lengths.items():
        counts[max(length - 1, 0) // width] += examples
    return LengthHistogram(bin_tokens=width, examples=tuple(counts))


def count_checked_shard(shard: FoundShard) -> ShardCounts:
    """Count the examples of a shard and compare the counts with the manifest.

    Raises ShardError if a record is damaged or the counts differ.
    """
    entry = shard.entry
    if entry is not None and not entry.examples and not shard.bytes:
        return ShardCounts(name=shard.name, bytes=0, layout=None)
    counts = count_shard(
        shard.path, shard.name, shard.bytes, objective=shard.objective, padding_id=shard.padding_id
    )
    for what in ("examples", "tokens", "masked_tokens", "rows"):
        found = getattr(counts, what)
        if entry is not None and found != (expected := getattr(entry, what)):
            raise ShardError(
                f"{shard.path}: {found} {what}, expected {expected} as {MANIFEST_NAME} says; "
                "bertdata verify-md5 tells more"
            )
    return counts


def _count_input_tokens(dataset: FoundDataset) -> tuple[int | None, int | None]:
    """Return the number of tokens of the input text and the number of [UNK] tokens, from the manifest.

    A number is None if the manifest does not have it.
    """
    inputs = dataset.manifest.inputs if dataset.manifest else ()
    return sum(entry.tokens for entry in inputs) if inputs else None, count_unknown_tokens(inputs)


def _find_common_layout(shards: list[ShardCounts], path: str) -> ShardLayout:
    """Return the layout that all shards have.

    Raises UsageError if the shards have different layouts. Raises ShardError if there is no example.
    """
    layouts = share_largest_sizes(
        (shard.name, shard.layout, shard.is_measured)
        for shard in shards
        if shard.examples and shard.layout is not None
    )
    if not layouts:
        raise ShardError(f"{path}: {len(shards)} shards without any example")
    first, common = layouts[0]
    for name, layout in layouts:
        for what in ("objective", "packing", "max_seq_length", "max_predictions_per_seq", "sizes"):
            found, expected = getattr(layout, what), getattr(common, what)
            if found != expected:
                raise UsageError(
                    f"{path}: {name} has {what} {found}, {first} has {expected}; "
                    "they are no one dataset: name one file, or a directory of one kind"
                )
    return common
