"""Decide from the words around an end mark whether a sentence ends (Kiss and Strunk 2006, section 4)."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bertdata.text.punkt.patterns import Patterns
from bertdata.text.punkt.tables import BEGINS_LOWER, LOWER, MIDDLE_UPPER, UPPER, PunktTables
from bertdata.unicode import characters

NUMBER = "##number##"
_PUNCTUATION = frozenset(";:,.!?")
_NUMBER = re.compile(r"-?[.,]?0[0,.-]*")


class _Word(NamedTuple):
    """Word of the text around an end mark, with its properties.

    type: the lower-cased word, or NUMBER for any number.
    is_initial: whether it is a letter and a period.
    is_abbreviation: whether it ends with a period and is in the table of abbreviations.
    ends_sentence: whether it looks like a sentence end. True for ``.``, ``?``, ``!``, and for a period that
    does not belong to a known abbreviation.
    """

    text: str
    type: str
    is_initial: bool
    is_abbreviation: bool
    ends_sentence: bool


def contains_sentence_end(context: str, tables: PunktTables, patterns: Patterns) -> bool:
    """Return True if a sentence ends within the context, that is after any of its words but the last."""
    words = (_classify_word(text, tables, patterns) for text in _split_words(context, patterns))
    return any(_ends_between(word, following, tables) for word, following in pairwise(words))


def _split_words(context: str, patterns: Patterns) -> Iterator[str]:
    """Yield the words of the context, which are the text around an end mark.

    A line of white space has no words.
    """
    for line in context.split("\n"):
        if line.strip():
            yield from patterns.word.findall(line)


def _classify_word(text: str, tables: PunktTables, patterns: Patterns) -> _Word:
    lowered = characters.lower(text)
    ends_in_period = text.endswith(".") and not text.endswith("..")
    is_abbreviation = ends_in_period and text != "." and _is_abbreviation(lowered[:-1], tables)
    return _Word(
        text=text,
        type=NUMBER if _is_number(lowered) else lowered,
        is_initial=len(text) == 2 and ends_in_period and patterns.is_letter(text[0]),
        is_abbreviation=is_abbreviation,
        ends_sentence=text in ("?", "!") or (ends_in_period and not is_abbreviation),
    )


def _is_abbreviation(lowered: str, tables: PunktTables) -> bool:
    """Return True if the word, or its part after the last hyphen, is a known abbreviation."""
    return lowered in tables.abbreviations or lowered.rpartition("-")[2] in tables.abbreviations


def _is_number(lowered: str) -> bool:
    """Return True if the word is a number: digits of any script, with periods, commas and hyphens."""
    digits = "".join("0" if characters.is_decimal(character) else character for character in lowered)
    return bool(_NUMBER.fullmatch(digits))


def _ends_between(word: _Word, following: _Word, tables: PunktTables) -> bool:
    """Return True if a sentence ends with ``word``, judging by the word that follows."""
    # A question or exclamation mark always ends the sentence. Any other word without a period never does.
    if not word.text.endswith("."):
        return word.ends_sentence
    word_type = _without_period(word.type)
    following_type = _without_period(following.type) if following.ends_sentence else following.type
    # Collocation heuristic: two words that the table lists as a pair, such as "U. S." or "J. Walter", are
    # never split.
    if (word_type, following_type) in tables.collocations:
        return False
    context = tables.contexts.get(following_type, 0)
    starts = _starts_sentence(following, context)
    is_upper = characters.is_upper(following.text[0])
    is_ellipsis = word.text.endswith("..")
    # After an abbreviation or an ellipsis, a sentence ends only if the next word clearly starts one: by its
    # case ("etc. The"), or because it often starts sentences in the training text.
    if (word.is_abbreviation or is_ellipsis) and not word.is_initial:
        return starts is True or (is_upper and following_type in tables.sentence_starters)
    if word.is_initial or word_type == NUMBER:
        # After an initial or a number ("J. Bach", German "3. Auflage"), no sentence ends if the next word
        # clearly does not start one. After an initial, a capitalised word that the training text never
        # has in lower case is taken for a name.
        is_name = word.is_initial and starts is None and is_upper and not context & LOWER
        if starts is False or is_name:
            return False
    return word.ends_sentence


def _starts_sentence(word: _Word, context: int) -> bool | None:
    """Decide from a word's case, compared with its use in the training text, whether it starts a sentence.

    Returns None if the case does not decide.
    """
    if word.text in _PUNCTUATION:
        return False
    first = word.text[0]
    # "The": the training text has it in lower case, and never capitalised in the middle of a sentence. So its
    # capital shows a sentence start.
    if characters.is_upper(first) and context & LOWER and not context & MIDDLE_UPPER:
        return True
    # "of": a lower-case word starts no sentence, unless the training text has it in lower case only and also
    # at the start of sentences.
    if characters.is_lower(first) and (context & UPPER or not context & BEGINS_LOWER):
        return False
    return None


def _without_period(word_type: str) -> str:
    return word_type[:-1] if len(word_type) > 1 and word_type.endswith(".") else word_type
