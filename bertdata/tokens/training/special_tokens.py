"""Special tokens of a new vocabulary: the usual tokens, and the tokens that the user adds with
``--special``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertdata.errors import SettingsError
from bertdata.records import ROLES
from bertdata.tokens.vocabulary import LARGEST_VOCABULARY

Kind = Literal["wordpiece", "bpe", "unigram"]
KINDS: tuple[Kind, ...] = ("wordpiece", "bpe", "unigram")

_BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_ROBERTA = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialTokens:
    """The special tokens of a new vocabulary.

    roles: token of each role, such as "mask" (see ``bertdata.records.ROLES``).
    first: tokens that get the ids 0, 1 and so on.
    last: tokens whose ids come after all learned tokens.
    """

    roles: dict[str, str]
    first: tuple[str, ...]
    last: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All special tokens, in the order of their ids."""
        return (*self.first, *self.last)

    @property
    def number(self) -> int:
        """Number of special tokens."""
        return len(self.all)


def check_vocabulary_size(size: int) -> None:
    """Raise SettingsError if a vocabulary of this size is larger than the tokenisers can read."""
    if size > LARGEST_VOCABULARY:
        raise SettingsError(f"size is {size}, expected at most {LARGEST_VOCABULARY}")


def number_special_tokens(kind: Kind, special: Sequence[str] = ()) -> SpecialTokens:
    """Choose the special tokens of a new vocabulary and the order of their ids.

    WordPiece has BERT's special tokens, all before the learned tokens. The other kinds have RoBERTa's special
    tokens, of which the mask gets the last id of the vocabulary.

    special: values of ``--special``. ``ROLE=TOKEN`` replaces the token of a role. Any other value is an
        additional token, whose id comes after those of the other tokens in ``first``.

    Raises SettingsError for an empty token, or for a token that is named twice.
    """
    roles = dict(_BERT if kind == "wordpiece" else _ROBERTA)
    more = []
    for given in special:
        role, equals, token = given.partition("=")
        if equals and role in ROLES:
            roles[role] = token
        else:
            more.append(given)
    named = [*roles.values(), *more]
    for token in named:
        if not token.strip() or len(token.splitlines()) > 1:
            raise SettingsError(f"--special {token!r}: expected a token of one line that is not blank")
        if named.count(token) > 1:
            raise SettingsError(f"--special {token}: is named twice, or is the token of another role")
    if kind == "wordpiece":
        return SpecialTokens(roles=roles, first=tuple(named), last=())
    first = [token for role, token in roles.items() if role != "mask"]
    return SpecialTokens(roles=roles, first=(*first, *more), last=(roles["mask"],))
