"""English sentence boundaries as NLTK's Punkt places them: the specification of _native/text/punkt.h.

Punkt (Kiss and Strunk 2006) decides for each candidate, a ``.``, ``?`` or ``!``, from the words on both
sides of it. The variants differ in what is a candidate and in a few characters: see
``bertdata.text.punkt.patterns``. What a letter, a digit or a capital is follows Unicode 11.0 in all of
them, as Python 3.7 had it: so "3.10.0" equals an installed nltk 3.10.0 wherever the running
interpreter's Unicode gives the characters of the text the same properties; "3.10.4", where that of the
installed package ``regex`` does too.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bertdata.text.punkt.patterns import Patterns, patterns_of
from bertdata.text.punkt.tables import PunktTables
from bertdata.text.punkt.variants import Variant
from bertdata.text.punkt.words import contains_sentence_end

_Span = tuple[int, int]


class _Candidate(NamedTuple):
    """An end mark that may end a sentence.

    place: where it is.
    resume: where the next sentence starts if it does.
    stop: end of its context: of the next word, or of the punctuation mark that follows it at once.
    """

    place: int
    resume: int
    stop: int


def split_sentences(paragraph: str, tables: PunktTables, variant: Variant) -> list[str]:
    """The sentences of a paragraph, in order, without the white space between them.

    White space before the first one is kept.

    >>> from bertdata.text.punkt.tables import parse_tables, TABLE_FILES
    >>> tables = parse_tables({name: b"dr\\t2" if "tab" in name else b"dr" for name in TABLE_FILES})
    >>> split_sentences("(Dr. No came.) He left.", tables, "3.10.0")
    ['(Dr. No came.)', 'He left.']
    """
    patterns = patterns_of(variant)
    spans = _with_closing_marks(paragraph, _spans(paragraph, tables, patterns), patterns)
    return [paragraph[first:last] for first, last in spans]


def _spans(paragraph: str, tables: PunktTables, patterns: Patterns) -> Iterator[_Span]:
    """Sentences, each ending with its end mark. What closes around it still opens the next one."""
    first = 0
    for start, candidate in _contexts(paragraph, patterns):
        if contains_sentence_end(paragraph[start : candidate.stop], tables, patterns):
            yield first, candidate.place + 1
            first = candidate.resume
    yield first, len(paragraph.rstrip())


def _contexts(paragraph: str, patterns: Patterns) -> Iterator[tuple[int, _Candidate]]:
    """Candidates to decide on, each with the start of its context, the word that it ends.

    Of candidates within one word only the last counts: ``Really?!)`` has one. Since nltk 3.10.0 white
    space within words is not only that of ASCII, and a candidate that is the first character of its
    word counts too: ``?! A`` has two. The very first character of a paragraph separates nothing.
    """
    start, held = 0, None
    for candidate in _candidates(paragraph, patterns):
        after = held.place + 1 if held else 1
        pieces = patterns.separator.split(paragraph[after : candidate.place])
        is_apart = len(pieces) > 1
        if held and (is_apart or (patterns.counts_first_mark and held.place == start)):
            yield start, held
        if is_apart:
            start = candidate.place - len(pieces[-1])
        held = candidate
    if held:
        yield start, held


def _candidates(paragraph: str, patterns: Patterns) -> Iterator[_Candidate]:
    for found in patterns.end_mark.finditer(paragraph):
        after = found.end()
        if found["next"]:
            yield _Candidate(found.start(), found.start("next"), found.end("next"))
        else:
            yield _Candidate(found.start(), after, after + 1)


def _with_closing_marks(paragraph: str, spans: Iterator[_Span], patterns: Patterns) -> Iterator[_Span]:
    """The spans. Closing quotes and brackets that open one go to the end of the one before."""
    first, last = next(spans)
    for next_first, next_last in spans:
        closing = patterns.closing.match(paragraph, next_first, next_last)
        if closing:
            last = next_first + len(closing.group().rstrip())
            next_first = closing.end()
        yield first, last
        first, last = next_first, next_last
    if first < last:  # nothing may be left of the last one
        yield first, last
