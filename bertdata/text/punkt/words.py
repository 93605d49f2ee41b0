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

    type: the word in lower case, or NUMBER for any number.
    is_initial: True if the word is a letter with a period.
    is_abbreviation: True if the word ends with a period and is in the table of abbreviations.
    ends_sentence: True if the word looks like the end of a sentence. It does if it is ``.``, ``?`` or ``!``,
        or ends with a period and is not a known abbreviation.
    """

    text: str
    type: str
    is_initial: bool
    is_abbreviation: bool
    ends_sentence: bool


def contains_sentence_end(context: str, tables: PunktTables, patterns: Patterns) -> bool:
    """Return True if a sentence ends after any word of the context except the last.

    context: the text around an end mark.
    """
    words = (_classify_word(text, tables, patterns) for text in _split_words(context, patterns))
    return any(_ends_sentence_after(word, following, tables) for word, following in pairwise(words))


def _split_words(context: str, patterns: Patterns) -> Iterator[str]:
    """Yield the words of the context, which are the text around an end mark.

    A line of white space has no words.
    """
    for line in context.split("\n"):
        if line.strip():
            yield from patterns.word.findall(line)


def _classify_word(text: str, tables: PunktTables, patterns: Patterns) -> _Word:
    """Return a word of the context with its properties."""
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


def _ends_sentence_after(word: _Word, following: _Word, tables: PunktTables) -> bool:
    """Return True if a sentence ends after ``word``, judging by the two words."""
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
    """Return True if the word starts a sentence, judging by the case of its first letter, False if it does
    not.

    The case is compared with how the word occurred in Punkt's training text. Returns None if this comparison
    does not decide.

    context: flags that say how the word occurred in the training text.
    """
    if word.text in _PUNCTUATION:
        return False
    first = word.text[0]
    # For example, "The" occurred in lower case, and never capitalised in the middle of a sentence. So its
    # capital letter shows the start of a sentence.
    if characters.is_upper(first) and context & LOWER and not context & MIDDLE_UPPER:
        return True
    # For example, "of": a word in lower case starts no sentence, unless the training text has it only in
    # lower case and also at the start of sentences.
    if characters.is_lower(first) and (context & UPPER or not context & BEGINS_LOWER):
        return False
    return None


def _without_period(word_type: str) -> str:
    return word_type[:-1] if len(word_type) > 1 and word_type.endswith(".") else word_type
