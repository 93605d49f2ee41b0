"""Rules that the settings of masks make of a vocabulary."""

from dataclasses import dataclass
from typing import Any

from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import Vocabulary

PADDING_TOKENS = ("[PAD]", "<pad>")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingRules:
    """Settings of masks for the ids of one vocabulary.

    replacements: random tokens are drawn from these, all tokens of the vocabulary, special ones among them
    (as Devlin et al. 2018 do). never_masked, continues_word: 1 for an id that is never masked, that continues
    the word before it.
    """

    settings: MaskingSettings
    mask: int
    replacements: tuple[int, ...]
    never_masked: bytes
    continues_word: bytes

    @property
    def mask_limit(self) -> int:
        """The number below which a draw of 32 bits makes [MASK]."""
        return limit_of(self.settings.mask_share)

    @property
    def random_limit(self) -> int:
        """The number below which other draws of 32 bits make a random token. From it on the id is kept."""
        kept = self.settings.kept_share
        return 1 << 32 if kept == 0 else limit_of(1 - kept)

    def for_kernel(self) -> dict[str, Any]:
        """The rules as the kernels of masks at load take them."""
        return {
            "most": self.settings.max_predictions_per_seq,
            "mask": self.mask,
            "mask_limit": self.mask_limit,
            "random_limit": self.random_limit,
            "replacements": list(self.replacements),
            "is_special": self.never_masked,
            "continues_word": self.continues_word,
            "whole_words": self.settings.whole_word_mask,
            "draws_counts": self.settings.mask_counts == "drawn",
        }


def masking_rules(vocabulary: Vocabulary, settings: MaskingSettings) -> MaskingRules:
    """The settings' rules for a vocabulary."""
    never = ids_of_roles(vocabulary, settings.never_masked)
    return MaskingRules(
        settings=settings,
        mask=vocabulary.role("mask"),
        replacements=vocabulary.replacements,
        never_masked=bytes(token in never for token in range(vocabulary.size)),
        continues_word=vocabulary.continues_word or bytes(vocabulary.size),
    )


def limit_of(share: float) -> int:
    """The number that a draw of 32 bits is below with a probability of ``share``."""
    return round(share * (1 << 32))


def ids_of_roles(vocabulary: Vocabulary, roles: tuple[str, ...]) -> frozenset[int]:
    """Ids of the special tokens with these roles, of those that the vocabulary has."""
    found = {token for role in roles if role != "pad" and (token := getattr(vocabulary, role)) is not None}
    if "pad" in roles:
        found |= {token for token, word in enumerate(vocabulary.words) if word in PADDING_TOKENS}
    return frozenset(found)
