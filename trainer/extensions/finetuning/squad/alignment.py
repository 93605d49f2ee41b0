"""Answers mapped back from tokens to the text of their context (get_final_text of run_squad.py)."""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

from bertdata.config.dialects import Dialect
from bertdata.tokens.basic import split_words


def answer_text(tokens: list[str], words: list[str], dialect: Dialect, lower_case: bool) -> str:
    """The part of the context's words that the tokens are; all of the words where they cannot be aligned.

    The words in tokeniser's form are searched for the joined tokens; characters other than blanks are then
    counted in both forms, which must have equally many of them (a dropped character breaks that).
    """
    joined = " ".join(tokens).replace(" ##", "").replace("##", "")
    wanted = " ".join(joined.split())
    whole = " ".join(words)
    normal = [text for word in words if (text := _normal(word, dialect, lower_case))]
    normalized = " ".join(normal)
    start = normalized.find(wanted)
    ends = list(accumulate(map(len, words)))
    if not wanted or start < 0 or len(normalized) - normalized.count(" ") != ends[-1]:
        return whole
    last = start + len(wanted) - 1
    return whole[_place(normalized, start, ends) : _place(normalized, last, ends) + 1]


@lru_cache(maxsize=1 << 16)
def _normal(word: str, dialect: Dialect, lower_case: bool) -> str:
    """The tokeniser's words of one of the context's words, blanks between them."""
    return " ".join(split_words(word, dialect, lower_case))


def _place(normalized: str, place: int, ends: list[int]) -> int:
    """The place in the joined words of the character at a place of the normalized text, blanks left out.

    ends: characters of the words up to each one's end.
    """
    number = place - normalized.count(" ", 0, place)
    return number + bisect_right(ends, number)
