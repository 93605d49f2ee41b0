"""Dialects: the rules by which published programs read text and vocabulary files, so that bertdata can read
them in the same way.
"""

from dataclasses import dataclass
from typing import Literal

from bertdata.errors import SettingsError

SPECIAL_TOKENS = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """Rules by which another program, such as BERT's original code, reads text and vocabularies.

    Dialects do not say how a program makes examples from the text. The objectives define that.

    duplicate_tokens: which id a token has if the vocabulary lists it twice, "first" or "last". With "last",
        ids are line numbers.
    max_word_chars: largest number of characters of a word. A longer word becomes a single [UNK].
    drops_unassigned: True removes the characters of all Unicode categories C* (Cc, Cf, Cn, Co, Cs) from the
        text. False removes only Cc and Cf.
    keeps_special_tokens: True keeps a special token between spaces as one token.
    drops_bad_utf8: True drops bytes that are not valid UTF-8. False treats them as an error.
    universal_newlines: True treats a carriage return as the end of a line. False drops it.
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
    """Return the dialect of this name. Raises SettingsError for an unknown name and lists the known names."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise SettingsError(f"dialect {name!r} is not known; known are {', '.join(DIALECTS)}") from None
