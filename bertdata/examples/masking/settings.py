"""Settings of masks: how many ids are masked, which ids can be masked, and what replaces masked ids."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import setting
from bertdata.config.settings import require

COUNTS = ("fixed", "drawn")
MASKINGS = ("dynamic", "fairseq", "fairseq-0.12")
"""Ways to draw masks when examples are loaded: this package's way, and the ways of two releases of fairseq.
"""
SHARES = ("mask_share", "random_share", "kept_share")
"""Names of the settings that say what replaces a masked id. The sum of their values must be 1."""
SPECIAL_ROLES = ("cls", "sep", "mask", "unk", "pad")
"""Roles of the special tokens that are never masked when examples are loaded."""
_ROUNDING = 1e-9  # The sum of the shares may differ from 1 by this much, because of rounding.


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingSettings:
    """Settings of an example's masks, in files (``bertdata create``) and at load.

    The defaults are for loading.

    masked_lm_prob: share of ids to mask.
    max_predictions_per_seq: most masks in an example. ``most_unmasked`` can require more.
    mask_counts: how many ids are masked. "fixed" masks the share masked_lm_prob of an example's ids, special
        tokens counted too, rounded half to even, but at least one id. "drawn" masks each id with the
        probability masked_lm_prob. It is only available at load.
    never_masked: roles of the special tokens that cannot be masked.
    joins_over_special: True if a word continues after a token that cannot be masked, as in the original
        programs of BERT and ALBERT. It matters only if whole words are masked.
    most_unmasked: most ids that may stay unmasked, for Graphcore. Longer examples get more masks. None means
        no limit.
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
        require(0 <= rate <= 1, f"masked_lm_prob is {rate}, expected a probability from 0 to 1")
        for name, value in self.shares.items():
            require(0 <= value <= 1, f"{name} is {value:g}, expected a share from 0 to 1")
        total = math.fsum(self.shares.values())
        listed = ", ".join(f"{name} {value:g}" for name, value in self.shares.items())
        require(abs(total - 1) <= _ROUNDING, f"{listed}: their sum is {total:g}, expected 1")
        require(
            self.mask_counts in COUNTS,
            f"mask_counts is {self.mask_counts!r}, expected one of {', '.join(COUNTS)}",
        )

    @classmethod
    def from_manifest(cls, settings: Mapping[str, Any]) -> "MaskingSettings":
        """Make settings with the shares of replacements in a dataset's manifest.

        A share that is missing in the manifest gets its default.

        settings: the settings in the manifest.
        """
        return cls(**{name: settings[name] for name in SHARES if name in settings})

    @property
    def shares(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in SHARES}

    @property
    def kept_of_unchanged(self) -> float:
        """Probability that a masked id which does not become [MASK] is kept.

        Otherwise it becomes a random id.
        """
        rest = self.kept_share + self.random_share
        return self.kept_share / rest if rest else 1.0


DEFAULT_SHARES = MaskingSettings().shares


def check_rate(name: str, rate: float) -> None:
    """Raise SettingsError unless the share of ids to mask is above 0 and at most 1.

    name: the setting's name, for the message.
    """
    require(0 < rate <= 1, f"{name} is {rate:g}, expected a share above 0, at most 1")


def check_loading(settings: MaskingSettings) -> None:
    """Raise SettingsError if no masks can be drawn at load with these settings."""
    check_rate("masked_lm_prob", settings.masked_lm_prob)
    most = settings.max_predictions_per_seq
    require(most >= 1, f"max_predictions_per_seq is {most}, expected 1 or more")


def check_passes(settings: Any) -> None:
    """Raise SettingsError if masked blocks cannot have this limit of masks or this number of passes over the
    text.
    """
    # The share is checked first, because the limit of masks is computed from it.
    rate = settings.masked_lm_prob
    require(0 <= rate <= 1, f"masked_lm_prob is {rate:g}, expected above 0, at most 1")
    most, longest = settings.max_predictions_per_seq, settings.max_seq_length
    require(
        0 <= most <= longest,
        f"max_predictions_per_seq is {most}, expected 1 to max_seq_length ({longest}), or 0 for as many as "
        "masked_lm_prob asks of a full block",
    )
    passes = settings.dupe_factor
    require(passes >= 1, f"dupe_factor is {passes}, expected 1 or more")
    require(
        settings.masks or passes == 1,
        f"dupe_factor is {passes}, expected 1: without masks all passes are alike",
    )
