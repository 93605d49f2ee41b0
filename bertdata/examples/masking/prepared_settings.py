"""Settings of masks prepared for a vocabulary: ids, and limits of draws. ``reference`` shows their use."""

from dataclasses import dataclass
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import Buffer, Documents, ExampleBatch, Vocabulary

PADDING_TOKENS = ("[PAD]", "<pad>")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingRules:
    """Settings of masks for the ids of one vocabulary.

    replacements: random tokens are drawn from these, all tokens of the vocabulary, special ones among them
    (as Devlin et al. 2018 do). never_masked, continues_word: 1 for an id that is never masked, that continues
    the word before it (0 for all where the ids do not tell that). needs_starts: so whole words, which the
    settings ask for, are told by the word starts of each example alone.
    """

    settings: MaskingSettings
    mask: int
    replacements: tuple[int, ...]
    never_masked: bytes
    continues_word: bytes
    needs_starts: bool

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


def masking_rules(vocabulary: Vocabulary, settings: MaskingSettings, *, masks: bool = True) -> MaskingRules:
    """The settings' rules for a vocabulary. masks: False where none is made, which needs no mask token."""
    never = ids_of_roles(vocabulary, settings.never_masked)
    return MaskingRules(
        settings=settings,
        mask=vocabulary.role("mask") if masks else 0,
        replacements=vocabulary.replacements,
        never_masked=bytes(token in never for token in range(vocabulary.size)),
        continues_word=vocabulary.continues_word or bytes(vocabulary.size),
        needs_starts=settings.whole_word_mask and vocabulary.continues_word is None,
    )


def starts_of(
    documents: Documents, vocabulary: Vocabulary, settings: MaskingSettings, kind: type[ExampleBatch]
) -> Buffer | None:
    """The documents' word starts, where masks of whole words or a column of the examples need them.

    None where they do not, or where the vocabulary's ids tell enough. SettingsError where nothing tells.
    """
    is_column = has_group(kind, WORD_STARTS)
    if not (is_column or settings.whole_word_mask):
        return None
    if documents.word_starts is None and (is_column or vocabulary.continues_word is None):
        raise SettingsError(f"{vocabulary.name}: its documents do not tell where words start")
    return documents.word_starts


def limit_of(share: float) -> int:
    """The number that a draw of 32 bits is below with a probability of ``share``."""
    return round(share * (1 << 32))


def ids_of_roles(vocabulary: Vocabulary, roles: tuple[str, ...]) -> frozenset[int]:
    """Ids of the special tokens with these roles, of those that the vocabulary has."""
    found = {token for role in roles if role != "pad" and (token := getattr(vocabulary, role)) is not None}
    if "pad" in roles:
        found |= {token for token, word in enumerate(vocabulary.words) if word in PADDING_TOKENS}
    return frozenset(found)
