"""Find sentence boundaries as NLTK's Punkt does. This is the specification of _native/text/punkt.h.

Punkt (Kiss and Strunk 2006) looks at each ``.``, ``?`` and ``!`` and decides from the words on both sides
whether a sentence ends there. A variant of Punkt reproduces a release of NLTK. The variants differ in a few
characters, and in the marks that they look at: see ``bertdata.text.punkt.patterns``.

Letters, digits and capitals follow Unicode 11.0 (Python 3.7) in all variants. So the results equal those of
an installed nltk 3.10.0 if the running Python's Unicode gives the characters of the text the same properties.
For "3.10.4" this must also hold for the installed package ``regex``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bertdata.text.punkt.patterns import Patterns, make_patterns
from bertdata.text.punkt.tables import PunktTables
from bertdata.text.punkt.variants import Variant
from bertdata.text.punkt.words import contains_sentence_end

_Span = tuple[int, int]


class _Candidate(NamedTuple):
    """End mark (``.``, ``?`` or ``!``) that may end a sentence.

    place: position of the mark.
    resume: position where the next sentence starts if this one ends here.
    stop: end of the text that is looked at to decide (the context). This is the end of the next word, or of
        the punctuation mark directly after the end mark.
    """

    place: int
    resume: int
    stop: int


def split_sentences(paragraph: str, tables: PunktTables, variant: Variant) -> list[str]:
    """Return the sentences of a paragraph in order, without the white space between them.

    White space before the first sentence is kept. In this example "dr" is the only abbreviation:

    >>> from bertdata.text.punkt.tables import parse_tables, TABLE_FILES
    >>> tables = parse_tables({name: b"dr\\t2" if "tab" in name else b"dr" for name in TABLE_FILES})
    >>> split_sentences("(Dr. No came.) He left.", tables, "3.10.0")
    ['(Dr. No came.)', 'He left.']
    """
    patterns = make_patterns(variant)
    spans = _move_closing_marks(paragraph, _find_spans(paragraph, tables, patterns), patterns)
    return [paragraph[first:last] for first, last in spans]


def _find_spans(paragraph: str, tables: PunktTables, patterns: Patterns) -> Iterator[_Span]:
    """Yield start and end of each sentence.

    A closing bracket after an end mark still belongs to the next span here (``_move_closing_marks`` moves
    it).
    """
    # In "(Dr. No came.) He left.", the first candidate is "Dr." with the context "(Dr. No". No sentence ends
    # in it, since "dr" is an abbreviation. The next candidate, "came.", has the context "came.)". A sentence
    # ends in it. So the sentence is "(Dr. No came." and the next span starts at ")". Later
    # _move_closing_marks moves the ")" to the first sentence.
    first = 0
    for start, candidate in _find_contexts(paragraph, patterns):
        if contains_sentence_end(paragraph[start : candidate.stop], tables, patterns):
            yield first, candidate.place + 1
            first = candidate.resume
    yield first, len(paragraph.rstrip())


def _find_contexts(paragraph: str, patterns: Patterns) -> Iterator[tuple[int, _Candidate]]:
    """Yield each end mark that is to be decided on, with the position where its context starts.

    The context starts with the word that the end mark ends. If a word contains several candidates, only the
    last counts: ``Really?!)`` has a single one. Only white space separates words here, and the first
    character of a paragraph never does.

    From nltk 3.10.0 on, only ASCII white space separates words here. A candidate that is the first character
    of its word then counts as well: ``?! A`` has two.
    """
    # ``held`` is the last candidate seen. It is decided on when the next candidate turns out to be in another
    # word. NLTK does the same when it looks backwards from each match for the last white space.
    start, held = 0, None
    for candidate in _find_candidates(paragraph, patterns):
        # Look at the text between two candidates. If it contains white space, the new candidate belongs to
        # another word, which starts after the last white space.
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


def _find_candidates(paragraph: str, patterns: Patterns) -> Iterator[_Candidate]:
    """Yield every end mark that white space and a word follow, or a punctuation mark that ends a word."""
    for found in patterns.end_mark.finditer(paragraph):
        after = found.end()
        if found["next"]:
            yield _Candidate(found.start(), found.start("next"), found.end("next"))
        else:
            yield _Candidate(found.start(), after, after + 1)


def _move_closing_marks(paragraph: str, spans: Iterator[_Span], patterns: Patterns) -> Iterator[_Span]:
    """Yield the spans, after moving closing quotes and brackets from the start of a span to the span before
    it.
    """
    first, last = next(spans)
    for next_first, next_last in spans:
        closing = patterns.closing.match(paragraph, next_first, next_last)
        if closing:
            last = next_first + len(closing.group().rstrip())
            next_first = closing.end()
        yield first, last
        first, last = next_first, next_last
    if first < last:  # nothing is left of a last span that consisted of closing marks only
        yield first, last
