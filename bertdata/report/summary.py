"""What a dataset holds, in numbers: lengths, padding, masks by kind, next sentences, balance of its shards.

Everything is counted from the shards' records; a manifest only says which they are, and must agree.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from bertdata.dataset.discover import FoundDataset, FoundShard
from bertdata.dataset.manifest import MANIFEST_NAME
from bertdata.errors import ShardError, UsageError
from bertdata.records import ShardLayout
from bertdata.report.count import ShardCounts, count_shard, merged, weighted_sum

EXPECTED_SHARES = {"mask": 0.8, "kept": 0.1, "random": 0.1}
"""Of the masked positions, by kind (Devlin et al. 2018)."""

QUANTILES = (5, 25, 50, 75, 95)
_BINS = 64
_EVIDENCE = 100  # masked positions without which no id is taken for [MASK]
_DECIMALS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskId:
    """The id of ``[MASK]``, and whether a vocabulary says so or the data suggest it."""

    id: int
    source: str  # vocabulary or data


@dataclass(frozen=True, kw_only=True, slots=True)
class Histogram:
    """Examples by length: bin i counts lengths ``i * bin_tokens + 1`` to ``(i + 1) * bin_tokens``."""

    bin_tokens: int
    examples: tuple[int, ...]


class Statistics:
    """The numbers of one dataset, from the counts of its shards; ShardError if they hold no example."""

    def __init__(self, dataset: FoundDataset, counts: list[ShardCounts], mask_id: int | None = None) -> None:
        self.path, self.title = dataset.path, dataset.title
        self.shards = sorted(counts, key=lambda shard: shard.name)
        self.layout = _common_layout(self.shards, dataset.path)
        self.lengths = merged(shard.lengths for shard in self.shards)
        self.masks = merged(shard.masks for shard in self.shards)
        self._shown = merged(shard.shown for shard in self.shards)
        self._kept = merged(shard.kept for shard in self.shards)
        self.mask_id = (
            _likely_mask(self._shown) if mask_id is None else MaskId(id=mask_id, source="vocabulary")
        )
        self.examples = self.lengths.total()
        self.tokens = weighted_sum(self.lengths)
        self.masked_tokens = self._shown.total()
        self.first_tokens = sum(shard.first_tokens for shard in self.shards)
        self.random_next = sum(shard.random_next for shard in self.shards)

    @property
    def padding(self) -> float:
        """The share of positions that hold no token."""
        return 1 - self.tokens / (self.examples * self.layout.max_seq_length)

    @property
    def imbalance(self) -> float:
        """By how much the largest shard exceeds the mean, in tokens: 0 where all are equal."""
        tokens = [shard.tokens for shard in self.shards]
        return max(tokens) * len(tokens) / sum(tokens) - 1

    @property
    def mask_kinds(self) -> dict[str, int]:
        """Masked positions by what stands there, as ``bertdata show`` tells them apart.

        mask: ``[MASK]``; kept: the original, also where it was drawn at random; random: another id.
        With the id of ``[MASK]`` unknown: kept and changed.
        """
        kept = self._kept.total()
        if self.mask_id is None:
            return {"kept": kept, "changed": self.masked_tokens - kept}
        mask = self._shown[self.mask_id.id]
        kept -= self._kept[self.mask_id.id]  # [MASK] stood in the text
        return {"mask": mask, "kept": kept, "random": self.masked_tokens - mask - kept}

    def histogram(self, bins: int = _BINS) -> Histogram:
        """The lengths in at most that many bins of one width."""
        limit = self.layout.max_seq_length
        width = -(-limit // bins)
        counts = [0] * -(-limit // width)
        for length, examples in self.lengths.items():
            counts[max(length - 1, 0) // width] += examples
        return Histogram(bin_tokens=width, examples=tuple(counts))

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "title": self.title,
            "max_seq_length": self.layout.max_seq_length,
            "max_predictions_per_seq": self.layout.max_predictions_per_seq,
            "shards": len(self.shards),
            "bytes": sum(shard.bytes for shard in self.shards),
            "examples": self.examples,
            "tokens": self.tokens,
            "padding_share": _rounded(self.padding),
            "lengths": self._lengths_json(),
            "masks": self._masks_json(),
            "next_sentences": {
                "random": self.random_next,
                "random_share": _share(self.random_next, self.examples),
            },
            "tokens_per_shard": self._balance_json(),
            "shard_list": [
                {
                    name: getattr(shard, name)
                    for name in ("name", "bytes", "examples", "tokens", "masked_tokens")
                }
                for shard in self.shards
            ],
        }

    def _lengths_json(self) -> dict[str, Any]:
        return {
            **_spread(self.lengths),
            "full_share": _share(self.lengths[self.layout.max_seq_length], self.examples),
            "first_segment_mean": _share(self.first_tokens, self.examples),
            "second_segment_mean": _share(self.tokens - self.first_tokens, self.examples),
            "histogram": asdict(self.histogram()),
        }

    def _masks_json(self) -> dict[str, Any]:
        return {
            "masked_tokens": self.masked_tokens,
            "token_share": _share(self.masked_tokens, self.tokens),
            "per_example": _spread(self.masks),
            "filled_share": _share(self.masks[self.layout.max_predictions_per_seq], self.examples),
            "mask_id": self.mask_id and asdict(self.mask_id),
            "kinds": {
                kind: {"count": count, "share": _share(count, self.masked_tokens)}
                for kind, count in self.mask_kinds.items()
            },
        }

    def _balance_json(self) -> dict[str, Any]:
        tokens = [shard.tokens for shard in self.shards]
        return {
            "min": min(tokens),
            "mean": _share(self.tokens, len(tokens)),
            "max": max(tokens),
            "imbalance": _rounded(self.imbalance),
        }


def quantile(counter: Counter[int], percent: int) -> int:
    """The smallest number that at least that many percent of what was counted do not exceed."""
    numbers = sorted(counter)
    below = list(accumulate(counter[number] for number in numbers))
    return numbers[bisect_left(below, -(-percent * below[-1] // 100))]


def count(shard: FoundShard) -> ShardCounts:
    """The shard's counts; ShardError if a record is damaged or they are not what the manifest says."""
    entry = shard.entry
    if entry is not None and not entry.examples and not shard.bytes:
        return ShardCounts(name=shard.name, bytes=0, layout=None)
    counts = count_shard(shard.path, shard.name, shard.bytes)
    for what in ("examples", "tokens", "masked_tokens"):
        found = getattr(counts, what)
        if entry is not None and found != (expected := getattr(entry, what)):
            raise ShardError(
                f"{shard.path}: {found} {what}, expected {expected} as {MANIFEST_NAME} says; "
                "bertdata verify-md5 tells more"
            )
    return counts


def _common_layout(shards: list[ShardCounts], path: str) -> ShardLayout:
    """The layout of all shards; UsageError if they differ, ShardError if there is no example."""
    first: ShardCounts | None = None
    for shard in shards:
        if not shard.examples or shard.layout is None:
            continue
        first = first or shard
        for what in ("max_seq_length", "max_predictions_per_seq"):
            found, expected = getattr(shard.layout, what), getattr(first.layout, what)
            if found != expected:
                raise UsageError(
                    f"{path}: {shard.name} has {what} {found}, {first.name} has {expected}; "
                    "they are no one dataset: name one file, or a directory of one kind"
                )
    if first is None or first.layout is None:
        raise ShardError(f"{path}: {len(shards)} shards without any example")
    return first.layout


def _likely_mask(shown: Counter[int]) -> MaskId | None:
    """The id that stands at more than half of the masked positions: nothing but ``[MASK]`` does.

    None if no id does, or if there are too few positions to tell.
    """
    if shown.total() < _EVIDENCE:
        return None
    likely = max(shown, key=lambda token: (shown[token], -token))
    return MaskId(id=likely, source="data") if 2 * shown[likely] > shown.total() else None


def _spread(counter: Counter[int]) -> dict[str, Any]:
    return {
        "min": min(counter),
        "mean": _share(weighted_sum(counter), counter.total()),
        "max": max(counter),
        "quantiles": {str(percent): quantile(counter, percent) for percent in QUANTILES},
    }


def _share(part: int, whole: int) -> float:
    return _rounded(part / whole) if whole else 0.0


def _rounded(value: float) -> float:
    return round(value, _DECIMALS)
