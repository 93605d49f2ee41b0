"""Sentences to pairs: which sentences become segment A and B of an example. Twin of _native/examples/pairs.h.

Devlin et al. 2018, section A.2, in the order of draws of the program that released it; with swapped halves
Lan et al. 2020.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents

Sentence = list[int]
"""A sentence's ids, or anything that stands for each of them."""
Document = list[Sentence]
Pair = tuple[list[int], list[int], int]
"""Ids of A, ids of B, label (1: B is random, or the halves are swapped)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRules:
    """Rules of pairs.

    max_tokens: the most ids of a pair. short_seq_prob: share of documents cut to a random shorter length.
    own_label: the label where ten draws of another document all gave the pair's own. swaps_halves: the text
    that would get a random B in half of the cases keeps its own, and is swapped with it.
    """

    max_tokens: int
    short_seq_prob: float
    own_label: Literal[0, 1] = 1
    swaps_halves: bool = False


def sentence_places(documents: Documents) -> list[Document]:
    """Documents as lists of sentences, sentences as lists of their ids' places in ``documents.ids``."""
    sentences = [list(range(start, end)) for start, end in pairwise([0, *map(int, documents.sentence_ends)])]
    return [sentences[start:end] for start, end in pairwise([0, *map(int, documents.document_ends)])]


def segment_starts(starts: Sequence[int], places: list[int]) -> list[int]:
    """The word starts of a segment's ids. Its first id always starts a word."""
    return [1, *(starts[place] for place in places[1:])] if places else []


def pair_document(
    documents: list[Document], index: int, stream: RandomStream, rules: PairRules
) -> Iterator[Pair]:
    """The pairs of ``documents[index]``.

    Draws happen as pairs are taken, so that masking can draw between two of them.
    """
    document = documents[index]
    target = rules.max_tokens
    if stream.random() < rules.short_seq_prob:
        target = stream.randint(2, rules.max_tokens)
    chunk: list[Sentence] = []
    place = 0
    while place < len(document):
        chunk.append(document[place])
        if place == len(document) - 1 or sum(map(len, chunk)) >= target:
            a_end = stream.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a, b = _joined(chunk[:a_end]), _joined(chunk[a_end:])
            label = 0
            if len(chunk) == 1 or (not rules.swaps_halves and stream.random() < 0.5):
                b, label = _random_next(documents, index, target - len(a), stream, rules)
                place -= len(chunk) - a_end  # the unused sentences go back
            elif rules.swaps_halves and stream.random() < 0.5:
                a, b, label = b, a, 1
            truncate_pair(a, b, rules.max_tokens, stream)
            yield a, b, label
            chunk = []
        place += 1


def _joined(sentences: list[Sentence]) -> list[int]:
    return [token for sentence in sentences for token in sentence]


def _random_next(
    documents: list[Document], index: int, wanted: int, stream: RandomStream, rules: PairRules
) -> tuple[list[int], int]:
    """At least ``wanted`` ids (while they last) from a random sentence of another document on, and the label.

    Ten draws at most look for another document; then the last one drawn serves, even the own one.
    """
    for _ in range(10):
        other = stream.randint(0, len(documents) - 1)
        if other != index:
            break
    document = documents[other]
    start = stream.randint(0, len(document) - 1)
    b: list[int] = []
    for sentence in document[start:]:
        b += sentence
        if len(b) >= wanted:
            break
    return b, rules.own_label if other == index else 1


def truncate_pair(a: list[int], b: list[int], max_tokens: int, stream: RandomStream) -> None:
    """Shorten a and b in place until together they hold at most max_tokens ids.

    The longer list loses one id at a time (b when they are equal), from the front or the back; one
    draw for each lost id.
    """
    while len(a) + len(b) > max_tokens:
        longer = a if len(a) > len(b) else b
        del longer[0 if stream.random() < 0.5 else -1]
