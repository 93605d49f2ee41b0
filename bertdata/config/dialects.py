"""Dialects: a table of how the programs that bertdata replaces differ in reading text."""

from dataclasses import dataclass
from typing import Literal

from bertdata.errors import SettingsError

SPECIAL_TOKENS = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """The habits of one original program in reading text. An objective has those in making examples.

    duplicate_tokens: which of two equal vocabulary lines counts; with "last", ids count lines.
    max_word_chars: a longer word is one [UNK].
    drops_unassigned: every category C* is dropped in cleaning, not only Cc and Cf.
    keeps_special_tokens: a white-space token that is exactly a special token stays whole.
    drops_bad_utf8: bytes that are not UTF-8 are dropped; elsewhere they are an error.
    universal_newlines: a carriage return ends a line; elsewhere it vanishes.
    """

    name: str
    duplicate_tokens: Literal["first", "last"] = "last"
    max_word_chars: int = 200
    drops_unassigned: bool = False
    keeps_special_tokens: bool = False
    drops_bad_utf8: bool = False
    universal_newlines: bool = False


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="mlperf", duplicate_tokens="first"),
        Dialect(name="google"),
        Dialect(
            name="nvidia",
            max_word_chars=100,
            drops_unassigned=True,
            keeps_special_tokens=True,
            universal_newlines=True,
        ),
        Dialect(name="graphcore", drops_bad_utf8=True),
    )
}


def find_dialect(name: str) -> Dialect:
    """The dialect of that name. SettingsError names the known ones."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise SettingsError(f"dialect {name!r} is not known; known are {', '.join(DIALECTS)}") from None
