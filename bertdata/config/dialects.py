"""Dialects: the ways in which the programs that bertdata imitates read text and vocabulary files."""

from dataclasses import dataclass
from typing import Literal

from bertdata.errors import SettingsError

SPECIAL_TOKENS = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """Rules by which another program, such as BERT's original code, reads text and vocabularies.

    A dialect does not say how a program makes examples. The objectives define that.

    duplicate_tokens: which id a token gets if the vocabulary lists it twice. With "last", ids are line
    numbers.
    max_word_chars: a longer word becomes a single [UNK].
    drops_unassigned: characters of every Unicode category C* (Cc, Cf, Cn, Co, Cs) are removed from text, not
    only Cc and Cf.
    keeps_special_tokens: a special token between spaces is not split.
    drops_bad_utf8: bytes that are not UTF-8 are dropped. Otherwise they are an error.
    universal_newlines: a carriage return ends a line. Otherwise it is dropped.
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
    """Return the dialect with this name. Raises SettingsError, which lists the known names."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise SettingsError(f"dialect {name!r} is not known; known are {', '.join(DIALECTS)}") from None
