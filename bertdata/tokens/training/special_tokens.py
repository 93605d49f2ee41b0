"""Special tokens of a new vocabulary: a layout of roles, and what ``--special`` changes or adds."""

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
    """The special tokens of a new vocabulary by id.

    first: those with ids 0, 1, ... last: those behind all learned tokens. roles: the token of each role
    (bertdata.records.ROLES).
    """

    roles: dict[str, str]
    first: tuple[str, ...]
    last: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.first, *self.last)

    @property
    def number(self) -> int:
        return len(self.all)


def check_size(size: int) -> None:
    """Raise SettingsError for a vocabulary of more tokens than any tokeniser of ours reads."""
    if size > LARGEST_VOCABULARY:
        raise SettingsError(f"size is {size}, expected at most {LARGEST_VOCABULARY}")


def lay_out(kind: Kind, special: Sequence[str] = ()) -> SpecialTokens:
    """BERT's layout for wordpiece, else RoBERTa's, whose mask is the last id.

    special: ``ROLE=TOKEN`` names the token of a role, anything else is one more token, behind the first ones.
    SettingsError for an empty token, and for one that is named twice.
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
