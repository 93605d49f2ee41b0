"""Settings of masks drawn when examples are loaded, and the rules that they make of a vocabulary."""

import math
from dataclasses import dataclass

from bertdata.config.settings import check
from bertdata.records import Vocabulary

COUNTS = ("fixed", "drawn")
PADDING_TOKENS = ("[PAD]", "<pad>")
_ROUNDING = 1e-9  # by which shares may miss 1


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingSettings:
    """Masks of an example.

    masked_lm_prob: share of ids to mask. mask_counts: "fixed" masks that share of an example's ids, special
    ones counted, rounded half to even, at least one; "drawn" masks each candidate with that probability.
    Never more than max_predictions_per_seq. mask_share, random_share, kept_share: of the masked ids, those
    that become [MASK], become a random token, stay as they are. whole_word_mask: all pieces of a word or
    none.
    """

    masked_lm_prob: float = 0.15
    max_predictions_per_seq: int
    mask_share: float = 0.8
    random_share: float = 0.1
    kept_share: float = 0.1
    whole_word_mask: bool = False
    mask_counts: str = "fixed"

    def __post_init__(self) -> None:
        check_rate("masked_lm_prob", self.masked_lm_prob)
        shares = {name: getattr(self, name) for name in ("mask_share", "random_share", "kept_share")}
        for name, value in shares.items():
            check(0 <= value <= 1, f"{name} is {value:g}, expected a share from 0 to 1")
        total = math.fsum(shares.values())
        listed = ", ".join(f"{name} {value:g}" for name, value in shares.items())
        check(abs(total - 1) <= _ROUNDING, f"{listed}: their sum is {total:g}, expected 1")
        check(
            self.mask_counts in COUNTS,
            f"mask_counts is {self.mask_counts!r}, expected one of {', '.join(COUNTS)}",
        )
        check(
            self.max_predictions_per_seq >= 1,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, expected 1 or more",
        )


def check_rate(name: str, rate: float) -> None:
    """SettingsError for a share of masked ids that is not above 0 and at most 1."""
    check(0 < rate <= 1, f"{name} is {rate:g}, expected a share above 0, at most 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingRules:
    """Rules for the ids of one vocabulary.

    A draw of 32 bits below mask_limit makes [MASK], else one below random_limit a random token, else the id
    is kept. most: masks of an example. replacements: random tokens are drawn from these, all tokens of the
    vocabulary, special ones among them (as Devlin et al. 2018 do). is_special, continues_word: 1 for an id
    that is never masked, that continues the word before it.
    """

    most: int
    mask: int
    mask_limit: int
    random_limit: int
    replacements: tuple[int, ...]
    is_special: bytes
    continues_word: bytes
    whole_words: bool
    draws_counts: bool


def masking_rules(vocabulary: Vocabulary, settings: MaskingSettings) -> MaskingRules:
    """The settings' rules for a vocabulary."""
    special = special_ids(vocabulary)
    return MaskingRules(
        most=settings.max_predictions_per_seq,
        mask=vocabulary.mask,
        mask_limit=limit_of(settings.mask_share),
        random_limit=1 << 32 if settings.kept_share == 0 else limit_of(1 - settings.kept_share),
        replacements=vocabulary.replacements,
        is_special=bytes(token in special for token in range(vocabulary.size)),
        continues_word=vocabulary.continues_word,
        whole_words=settings.whole_word_mask,
        draws_counts=settings.mask_counts == "drawn",
    )


def limit_of(share: float) -> int:
    """The number that a draw of 32 bits is below with a probability of ``share``."""
    return round(share * (1 << 32))


def special_ids(vocabulary: Vocabulary) -> frozenset[int]:
    """Ids that are never masked: [CLS], [SEP], [MASK], [UNK] and padding."""
    padding = [token for token, word in enumerate(vocabulary.words) if word in PADDING_TOKENS]
    named = (vocabulary.cls, vocabulary.sep, vocabulary.mask, vocabulary.unk)
    return frozenset([*(token for token in named if token is not None), *padding])
