"""Describes and counts masks for the commands ``show`` and ``stats``, for all objectives with masked
words.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain, compress, repeat
from operator import add, eq
from typing import Any

from bertdata.examples.counting import (
    compute_ratio,
    compute_sizes,
    convert_to_ints,
    describe_distribution,
    round_decimals,
)
from bertdata.examples.groups import get_masks
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.objective import Findings, Totals, join_tokens

_EVIDENCE = 100  # The id of [MASK] is guessed only if there are at least this many masked positions.
KIND_NAMES = {"mask": "[MASK]", "kept": "kept", "random": "random", "changed": "[MASK] or random"}


def describe_masks(
    ids: list[int], positions: list[int], labels: list[int], words: list[str], mask_id: int | None
) -> Iterator[str]:
    """Yield a line for each mask: position, kind of replacement, original token, and random token if there is
    one.
    """
    for position, label in zip(positions, labels, strict=True):
        kind = find_mask_kind(ids[position], label, mask_id)
        became = f" -> {join_tokens([ids[position]], words)}" if kind in ("random", "changed") else ""
        yield f"  {position:<4}{kind:<8}{join_tokens([label], words)}{became}"


def find_mask_kind(shown: int, label: int, mask_id: int | None) -> str:
    """Return what happened to a masked position: "[MASK]", "kept" or "random".

    If the id of [MASK] is unknown, the result is "kept" or "changed".

    shown: the id that is now at the position.
    label: the original id.
    mask_id: the id of [MASK], or None if it is unknown.
    """
    if mask_id is None:
        return "kept" if shown == label else "changed"
    if shown == mask_id:
        return "[MASK]"
    return "kept" if shown == label else "random"


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskId:
    """The id of ``[MASK]``, and how it is known.

    source: "vocabulary" if the vocabulary contains it, "data" if it was guessed from the data.
    """

    id: int
    source: str  # "vocabulary" or "data"


class MaskCounts:
    """Counts of masks, from which ``stats`` makes its report. They do not need the id of [MASK].

    masks: for each number of masked positions, how many examples have that number.
    shown: for each id, how many masked positions hold it in the example, after masking.
    kept: for each id, how many masked positions held it before masking and still hold it.
    """

    def __init__(self) -> None:
        self.masks: Counter[int] = Counter()
        self.shown: Counter[int] = Counter()
        self.kept: Counter[int] = Counter()

    def add(self, batch: Any) -> None:
        """Count the examples of a batch."""
        # Whole columns are processed with map and compress, because a loop over examples would be far slower.
        ends, masks = convert_to_ints(batch.ends), get_masks(batch)
        counts = compute_sizes(convert_to_ints(masks.ends))
        # Compute for each mask the start of its example. For example, ends [5, 9] and counts [2, 1] give the
        # starts 0, 0 and 5. The start plus the mask's position is its index in ``ids``.
        starts = chain.from_iterable(map(repeat, [0, *ends[:-1]], counts))
        shown = list(map(memoryview(batch.ids).__getitem__, map(add, starts, convert_to_ints(masks.places))))
        self.masks.update(counts)
        self.shown.update(shown)
        self.kept.update(compress(shown, map(eq, shown, convert_to_ints(masks.originals))))

    def merge(self, other: "MaskCounts") -> None:
        """Add the counts of another shard."""
        self.masks.update(other.masks)
        self.shown.update(other.shown)
        self.kept.update(other.kept)

    @property
    def masked_tokens(self) -> int:
        return self.shown.total()

    def guess_mask_id(self) -> MaskId | None:
        """Guess the id of [MASK]: the id that is at more than half of the masked positions.

        Returns None if there is no such id, or if there are too few masked positions.
        """
        if self.shown.total() < _EVIDENCE:
            return None
        # About 80 % of masked positions become [MASK], so no other id is nearly as frequent.
        likely = max(self.shown, key=lambda token: (self.shown[token], -token))
        return MaskId(id=likely, source="data") if 2 * self.shown[likely] > self.shown.total() else None

    def count_kinds(self, mask: MaskId | None) -> dict[str, int]:
        """Return the number of masked positions of each kind.

        With a known id of [MASK] there are three kinds: "mask" is [MASK], "kept" is the original id, also if
        it was drawn at random, and "random" is another id. Otherwise there are two kinds: "kept", and
        "changed" for any other id.

        mask: the id of [MASK], or None if it is unknown.
        """
        kept = self.kept.total()
        if mask is None:
            return {"kept": kept, "changed": self.masked_tokens - kept}
        masked = self.shown[mask.id]
        # Here the text itself contains [MASK], so these positions count as "mask", not as "kept".
        kept -= self.kept[mask.id]
        return {"mask": masked, "kept": kept, "random": self.masked_tokens - masked - kept}

    def findings(self, totals: Totals) -> Findings:
        """Return the part of ``stats`` about masks: lines to print, and the section "masks" of its JSON."""
        mask = self.guess_mask_id()
        if totals.mask_id is not None:
            mask = MaskId(id=totals.mask_id, source="vocabulary")
        return Findings(list(self._make_rows(totals, mask)), {"masks": self._make_section(totals, mask)})

    def _make_rows(self, totals: Totals, mask: MaskId | None) -> Iterator[tuple[str, str]]:
        masked, limit = self.masked_tokens, totals.layout.max_predictions_per_seq
        if not masked:
            yield "masked", "nothing: masks are to be drawn when examples are loaded"
            return
        yield "masked", f"{masked:,}, {masked / totals.tokens:.2%} of the real tokens"
        mean = masked / totals.examples
        yield "  per example", f"mean {mean:.2f}, {min(self.masks)} to {max(self.masks)}"
        full = self.masks[limit] / totals.examples
        yield "  filled", f"{full:.2%} of the examples have all {limit} predictions"
        expected = _find_expected_shares(totals.settings)
        for kind, positions in self.count_kinds(mask).items():
            share_text = f"{positions / masked:.2%}, {positions:,} (expected {100 * expected[kind]:g}%)"
            yield f"  {KIND_NAMES[kind]}", share_text
        if mask is None:
            yield "  id of [MASK]", "not known: --vocab tells [MASK] and random tokens apart"
        elif mask.source == "data":
            evidence = "by the data, it stands at most masked positions; --vocab makes it certain"
            yield "  id of [MASK]", f"{mask.id} {evidence}"
        else:
            yield "  id of [MASK]", f"{mask.id} by the vocabulary"

    def _make_section(self, totals: Totals, mask: MaskId | None) -> dict[str, Any]:
        expected = _find_expected_shares(totals.settings)
        return {
            "masked_tokens": self.masked_tokens,
            "token_share": compute_ratio(self.masked_tokens, totals.tokens),
            "per_example": describe_distribution(self.masks),
            "filled_share": compute_ratio(self.masks[totals.layout.max_predictions_per_seq], totals.examples),
            "mask_id": mask and asdict(mask),
            "kinds": {
                kind: {
                    "count": count,
                    "share": compute_ratio(count, self.masked_tokens),
                    "expected_share": round_decimals(expected[kind]),
                }
                for kind, count in self.count_kinds(mask).items()
            },
        }


def _find_expected_shares(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return which share of the masked positions should be of each kind, according to the dataset's settings.

    settings: the settings in the dataset's manifest.
    """
    masking = MaskingSettings.from_manifest(settings)
    return {
        "mask": masking.mask_share,
        "random": masking.random_share,
        "kept": masking.kept_share,
        "changed": 1 - masking.kept_share,
    }
