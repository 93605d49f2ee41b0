"""Settings of masks in the form that drawing needs: the ids of one vocabulary, and limits for random numbers.

``bertdata.examples.masking.reference`` shows how they are used.
"""

from dataclasses import dataclass
from typing import Any

from bertdata.errors import SettingsError
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.records import Buffer, Documents, ExampleBatch, Vocabulary

PADDING_TOKENS = ("[PAD]", "<pad>")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskingRules:
    """Settings of masks together with what they mean for the ids of one vocabulary.

    mask: id of the token [MASK].
    replacements: ids from which random tokens are drawn. These are all tokens of the vocabulary, special
        tokens included, as in Devlin et al. 2018.
    never_masked: one byte per id, 1 if the id is never masked.
    continues_word: one byte per id, 1 if the id continues the word before it. All bytes are 0 if the
        vocabulary does not show it.
    needs_starts: True if whole words are masked, but the vocabulary does not show where words start. The
        examples must then store it.
    """

    settings: MaskingSettings
    mask: int
    replacements: tuple[int, ...]
    never_masked: bytes
    continues_word: bytes
    needs_starts: bool

    @property
    def mask_limit(self) -> int:
        """An id becomes [MASK] if the 32-bit random number drawn for it is below this limit."""
        return compute_draw_limit(self.settings.mask_share)

    @property
    def random_limit(self) -> int:
        """An id becomes random if its 32-bit random number is below this limit, but not below ``mask_limit``.

        An id whose number is not below this limit stays as it is.
        """
        kept = self.settings.kept_share
        return 1 << 32 if kept == 0 else compute_draw_limit(1 - kept)

    def make_kernel_arguments(self) -> dict[str, Any]:
        """Return the settings as arguments of the C++ kernels that mask examples while they are loaded."""
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


def prepare_masking_rules(
    vocabulary: Vocabulary, settings: MaskingSettings, *, masks: bool = True
) -> MaskingRules:
    """Prepare the settings for the ids of a vocabulary.

    masks: False if nothing will be masked. The vocabulary then needs no mask token.
    """
    never = find_role_ids(vocabulary, settings.never_masked)
    return MaskingRules(
        settings=settings,
        mask=vocabulary.role("mask") if masks else 0,
        replacements=vocabulary.replacements,
        never_masked=bytes(token in never for token in range(vocabulary.size)),
        continues_word=vocabulary.continues_word or bytes(vocabulary.size),
        needs_starts=settings.whole_word_mask and vocabulary.continues_word is None,
    )


def starts_of(
    documents: Documents, vocabulary: Vocabulary, settings: MaskingSettings, batch_type: type[ExampleBatch]
) -> Buffer | None:
    """Return the documents' word starts if masking whole words or a column of the examples needs them.

    Returns None if nothing needs them, or if the vocabulary already says which ids continue a word. Raises
    SettingsError if they are needed but unknown.
    """
    is_column = has_group(batch_type, WORD_STARTS)
    if not (is_column or settings.whole_word_mask):
        return None
    if documents.word_starts is None and (is_column or vocabulary.continues_word is None):
        raise SettingsError(f"{vocabulary.name}: its documents do not tell where words start")
    return documents.word_starts


def compute_draw_limit(share: float) -> int:
    """Return the limit below which a random 32-bit integer lies with the probability ``share``."""
    return round(share * (1 << 32))


def find_role_ids(vocabulary: Vocabulary, roles: tuple[str, ...]) -> frozenset[int]:
    """Return the ids of the special tokens with these roles, such as "cls".

    Roles without a token are ignored.
    """
    found = {token for role in roles if role != "pad" and (token := getattr(vocabulary, role)) is not None}
    # A vocabulary may have a token spelled [PAD] without declaring it as its padding token.
    if "pad" in roles:
        found |= {token for token, word in enumerate(vocabulary.words) if word in PADDING_TOKENS}
    return frozenset(found)
