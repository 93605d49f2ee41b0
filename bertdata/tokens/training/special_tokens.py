"""Special tokens of a new vocabulary: the standard layout, and the changes made by ``--special``."""

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

    roles: token of each role (``bertdata.records.ROLES``).
    first: tokens with the ids 0, 1 and so on. last: tokens with ids after all learned tokens.
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


def check_vocabulary_size(size: int) -> None:
    """Raise SettingsError if the vocabulary would be larger than any tokeniser here can read."""
    if size > LARGEST_VOCABULARY:
        raise SettingsError(f"size is {size}, expected at most {LARGEST_VOCABULARY}")


def number_special_tokens(kind: Kind, special: Sequence[str] = ()) -> SpecialTokens:
    """Return the special tokens: BERT's layout for wordpiece, else RoBERTa's, with the mask as the last id.

    special: values of ``--special``. ``ROLE=TOKEN`` replaces the token of a role. Any other text is an
    additional token, with an id after those of the first tokens.
    SettingsError for an empty token or one that is named twice.
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
