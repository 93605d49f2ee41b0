"""Sentences to pairs: which sentences become segment A and B of an example. Twin of _native/examples/bert.h.

Devlin et al. 2018, section A.2, in the order of draws of the program that released it.
"""

from collections.abc import Iterator

from bertdata.examples.bert.settings import PairHabits
from bertdata.examples.random_stream import RandomStream

Sentence = list[int]
Document = list[Sentence]
Pair = tuple[list[int], list[int], int]
"""Ids of A, ids of B, next-sentence label (1: B is random)."""


def pair_document(
    documents: list[Document],
    index: int,
    stream: RandomStream,
    *,
    max_tokens: int,
    short_seq_prob: float,
    habits: PairHabits,
) -> Iterator[Pair]:
    """The pairs of ``documents[index]``, each of at most max_tokens ids.

    Draws happen as pairs are taken, so that masking can draw between two of them.
    """
    document = documents[index]
    target = max_tokens
    if stream.random() < short_seq_prob:
        target = stream.randint(2, max_tokens)
    chunk: list[Sentence] = []
    place = 0
    while place < len(document):
        chunk.append(document[place])
        if place == len(document) - 1 or sum(map(len, chunk)) >= target:
            a_end = stream.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a = [token for sentence in chunk[:a_end] for token in sentence]
            next_label = 0
            if len(chunk) == 1 or stream.random() < 0.5:
                b, next_label = _random_next(documents, index, target - len(a), stream, habits)
                place -= len(chunk) - a_end  # the unused sentences go back
            else:
                b = [token for sentence in chunk[a_end:] for token in sentence]
            truncate_pair(a, b, max_tokens, stream)
            yield a, b, next_label
            chunk = []
        place += 1


def _random_next(
    documents: list[Document], index: int, wanted: int, stream: RandomStream, habits: PairHabits
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
    return b, habits.own_next_label if other == index else 1


def truncate_pair(a: list[int], b: list[int], max_tokens: int, stream: RandomStream) -> None:
    """Shorten a and b in place until together they hold at most max_tokens ids.

    The longer list loses one id at a time (b when they are equal), from the front or the back; one
    draw for each lost id.
    """
    while len(a) + len(b) > max_tokens:
        longer = a if len(a) > len(b) else b
        del longer[0 if stream.random() < 0.5 else -1]
