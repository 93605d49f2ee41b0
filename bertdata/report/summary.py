"""A dataset in numbers: lengths, padding, balance of its shards, and what its objective tells.

Everything is counted from the shards' records; a manifest only says which they are, and must agree.
But for [UNK] and for text that no example holds: the manifest counts them in the inputs, each token once.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertdata.dataset.discover import FoundDataset, FoundShard
from bertdata.dataset.manifest import unknown_tokens
from bertdata.errors import ShardError, UsageError
from bertdata.examples.counting import ratio, rounded, spread, weighted_sum
from bertdata.examples.objective import Findings, Totals
from bertdata.examples.objectives import find_objective
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.records import ShardLayout
from bertdata.report.count import ShardCounts, count_shard, merged
from bertdata.shards.measured_sizes import with_largest_sizes

_BINS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthHistogram:
    """Examples by length: bin i counts lengths ``i * bin_tokens + 1`` to ``(i + 1) * bin_tokens``."""

    bin_tokens: int
    examples: tuple[int, ...]


class Statistics:
    """The numbers of one dataset, from the counts of its shards. ShardError if they hold no example."""

    def __init__(self, dataset: FoundDataset, counts: list[ShardCounts], mask_id: int | None = None) -> None:
        self.path, self.title = dataset.path, dataset.title
        self.shards = sorted(counts, key=lambda shard: shard.name)
        self.layout = _common_layout(self.shards, dataset.path)
        self.lengths = merged(shard.lengths for shard in self.shards)
        self.packs = merged(shard.packs for shard in self.shards)
        self.examples = self.lengths.total()
        self.tokens = weighted_sum(self.lengths)
        settings = dataset.manifest.plan.settings.by_name if dataset.manifest else {}
        self.findings = self._own_findings(settings, mask_id)
        self.input_tokens, self.unknown_tokens = _input_amounts(dataset)
        self.lost_tokens = dataset.manifest.lost_tokens if dataset.manifest else None

    def _own_findings(self, settings: Mapping[str, Any], mask_id: int | None) -> Findings:
        """The objective's statistics, of all shards together."""
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
        """The share of positions that hold no token."""
        return 1 - self.tokens / (self.rows * self.layout.max_seq_length)

    @property
    def rows(self) -> int:
        """Rows of S positions: as many as examples where they are not packed."""
        return self.packs.total() or self.examples

    @property
    def unknown(self) -> float | None:
        """The share of [UNK] in the tokens of the inputs. None where the manifest does not say."""
        if self.unknown_tokens is None or not self.input_tokens:
            return None
        return self.unknown_tokens / self.input_tokens

    @property
    def lost(self) -> float | None:
        """Return the share of the inputs' tokens that no example holds. None where nobody counted them."""
        if self.lost_tokens is None or not self.input_tokens:
            return None
        return self.lost_tokens / self.input_tokens

    @property
    def imbalance(self) -> float:
        """By how much the largest shard exceeds the mean, in tokens: 0 where all are equal."""
        tokens = [shard.tokens for shard in self.shards]
        return max(tokens) * len(tokens) / sum(tokens) - 1

    def histogram(self, bins: int = _BINS) -> LengthHistogram:
        """The lengths in at most that many bins of one width."""
        return histogram_of(self.lengths, self.layout.max_seq_length, bins)

    def as_json(self) -> dict[str, Any]:
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
            "padding_share": rounded(self.padding),
            "input_tokens": self.input_tokens,
            "unknown_tokens": self.unknown_tokens,
            "unknown_share": None if self.unknown is None else rounded(self.unknown),
            "lost_tokens": self.lost_tokens,
            "lost_share": None if self.lost is None else rounded(self.lost),
            **self._packing_json(),
            **self._sections(),
            "tokens_per_shard": self._balance_json(),
            "shard_list": [
                {
                    name: getattr(shard, name)
                    for name in ("name", "bytes", "examples", "tokens", "masked_tokens")
                }
                for shard in self.shards
            ],
        }

    def _packing_json(self) -> dict[str, Any]:
        """The section on packed rows, where they are."""
        if self.layout.packing is None:
            return {}
        packing = {
            "layout": self.layout.packing,
            "rows": self.rows,
            "most_sequences_per_row": self.layout.sequences_per_row,
            "sequences_per_row": ratio(self.examples, self.rows),
            "rows_by_sequences": {str(sequences): self.packs[sequences] for sequences in sorted(self.packs)},
            "efficiency": ratio(self.tokens, self.rows * self.layout.max_seq_length),
        }
        return {"packing": packing}

    def _sections(self) -> dict[str, Any]:
        """The lengths, and the objective's sections. What it has to say of lengths joins them."""
        own = self.findings.sections
        lengths = {
            **spread(self.lengths),
            "full_share": ratio(self.lengths[self.layout.max_seq_length], self.examples),
            **own.get("lengths", {}),
            "histogram": asdict(self.histogram()),
        }
        return {"lengths": lengths, **{name: section for name, section in own.items() if name != "lengths"}}

    def _balance_json(self) -> dict[str, Any]:
        tokens = [shard.tokens for shard in self.shards]
        return {
            "min": min(tokens),
            "mean": ratio(self.tokens, len(tokens)),
            "max": max(tokens),
            "imbalance": rounded(self.imbalance),
        }


def histogram_of(lengths: Mapping[int, int], limit: int, bins: int = _BINS) -> LengthHistogram:
    """Examples by length, of which none exceeds the limit, in at most that many bins of one width."""
    width = -(-limit // bins)
    counts = [0] * -(-limit // width)
    for length, examples in lengths.items():
        counts[max(length - 1, 0) // width] += examples
    return LengthHistogram(bin_tokens=width, examples=tuple(counts))


def count(shard: FoundShard) -> ShardCounts:
    """The shard's counts. ShardError if a record is damaged or they are not what the manifest says."""
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


def _input_amounts(dataset: FoundDataset) -> tuple[int | None, int | None]:
    """Tokens of the inputs, and those that are [UNK], as the manifest counts them."""
    inputs = dataset.manifest.inputs if dataset.manifest else ()
    return sum(entry.tokens for entry in inputs) if inputs else None, unknown_tokens(inputs)


def _common_layout(shards: list[ShardCounts], path: str) -> ShardLayout:
    """The layout of all shards. UsageError if they differ, ShardError if there is no example."""
    layouts = with_largest_sizes(
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
