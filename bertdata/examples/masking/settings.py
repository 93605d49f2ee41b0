"""Settings of masks: how many ids are masked, which ones, and what stands in their place."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import setting
from bertdata.config.settings import check

COUNTS = ("fixed", "drawn")
MASKINGS = ("dynamic", "fairseq", "fairseq-0.12")
"""The ways to draw masks at load: ours, and those of other programs, by release."""
SHARES = ("mask_share", "random_share", "kept_share")
"""Settings whose sum is 1."""
SPECIAL_ROLES = ("cls", "sep", "mask", "unk", "pad")
"""Roles of the tokens that are not masked at load."""
_ROUNDING = 1e-9  # by which the shares may miss 1


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingSettings:
    """Masks of an example, in files (``bertdata create``) and at load. The defaults are those of loading.

    masked_lm_prob: share of ids to mask. mask_counts: "fixed" masks that share of an example's ids, special
    ones counted, rounded half to even, at least one; "drawn" (at load only) masks each candidate with that
    probability. Never more than max_predictions_per_seq, but for most_unmasked: a longer example has at least
    so many masks that no more ids stay unmasked (Graphcore's habit).

    never_masked: roles of tokens that are no candidates; everything else is. joins_over_special: with whole
    words, a piece behind such a token still belongs to the word before it, as in the originals' files.
    """

    masked_lm_prob: float = setting(0.15, "share of an example's token ids to mask", least=0, most=1)
    max_predictions_per_seq: int = setting(76, "most masked positions in an example")
    mask_share: float = setting(0.8, "share of masked positions that become [MASK]", least=0, most=1)
    random_share: float = setting(0.1, "share of masked positions that get a random token", least=0, most=1)
    kept_share: float = setting(0.1, "share of masked positions that keep their token", least=0, most=1)
    whole_word_mask: bool = setting(False, "mask all pieces of a word, or none")
    mask_counts: str = setting(
        "fixed",
        "masks per example. fixed: the share of its ids, rounded; drawn: each id with that probability",
        COUNTS,
    )
    never_masked: tuple[str, ...] = SPECIAL_ROLES
    joins_over_special: bool = False
    most_unmasked: int | None = None

    def __post_init__(self) -> None:
        rate = self.masked_lm_prob
        check(0 <= rate <= 1, f"masked_lm_prob is {rate}, expected a probability from 0 to 1")
        for name, value in self.shares.items():
            check(0 <= value <= 1, f"{name} is {value:g}, expected a share from 0 to 1")
        total = math.fsum(self.shares.values())
        listed = ", ".join(f"{name} {value:g}" for name, value in self.shares.items())
        check(abs(total - 1) <= _ROUNDING, f"{listed}: their sum is {total:g}, expected 1")
        check(
            self.mask_counts in COUNTS,
            f"mask_counts is {self.mask_counts!r}, expected one of {', '.join(COUNTS)}",
        )

    @classmethod
    def of_manifest(cls, settings: Mapping[str, Any]) -> "MaskingSettings":
        """The shares of a dataset by the settings in its manifest, which leaves the defaults out."""
        return cls(**{name: settings[name] for name in SHARES if name in settings})

    @property
    def shares(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in SHARES}

    @property
    def kept_of_unchanged(self) -> float:
        """The probability to keep a masked id that does not become [MASK], else it becomes a random token."""
        rest = self.kept_share + self.random_share
        return self.kept_share / rest if rest else 1.0


DEFAULT_SHARES = MaskingSettings().shares


def check_rate(name: str, rate: float) -> None:
    """SettingsError for a rate of masks at load that is not above 0 and at most 1."""
    check(0 < rate <= 1, f"{name} is {rate:g}, expected a share above 0, at most 1")


def check_loading(settings: MaskingSettings) -> None:
    """SettingsError for settings of which no masks can be drawn at load."""
    check_rate("masked_lm_prob", settings.masked_lm_prob)
    most = settings.max_predictions_per_seq
    check(most >= 1, f"max_predictions_per_seq is {most}, expected 1 or more")


def check_passes(settings: Any) -> None:
    """SettingsError for settings of blocks that limit their masks, or repeat their passes, as none can be."""
    rate = settings.masked_lm_prob  # before anything is computed from it
    check(0 <= rate <= 1, f"masked_lm_prob is {rate:g}, expected above 0, at most 1")
    most, longest = settings.max_predictions_per_seq, settings.max_seq_length
    check(
        0 <= most <= longest,
        f"max_predictions_per_seq is {most}, expected 1 to max_seq_length ({longest}), or 0 for as many as "
        "masked_lm_prob asks of a full block",
    )
    passes = settings.dupe_factor
    check(passes >= 1, f"dupe_factor is {passes}, expected 1 or more")
    check(
        settings.masks or passes == 1,
        f"dupe_factor is {passes}, expected 1: without masks all passes are alike",
    )
