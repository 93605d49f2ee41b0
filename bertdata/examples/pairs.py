"""Chooses which sentences become the segments A and B of an example.

The rules are those of Devlin et al. 2018, section A.2. Random draws have the order of the program released
with the paper. As an alternative, A and B are swapped as in Lan et al. 2020 (ALBERT). Pure-Python twin of
_native/examples/pairs.h.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bertdata.examples.random_stream import RandomStream
from bertdata.records import Documents

Sentence = list[int]
"""A sentence, as a list of its ids, or of the indices of its ids in ``Documents.ids``."""
Document = list[Sentence]
Pair = tuple[list[int], list[int], int]
"""A pair: segment A, segment B and the label, which is 1 if B is random or the segments were swapped, else 0.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRules:
    """Rules for making pairs of segments.

    max_tokens: most ids of a pair.
    short_seq_prob: share of documents whose pairs get a random shorter length.
    own_label: label if ten draws of a random document all gave the pair's own document.
    swaps_halves: True swaps A and B in half of the pairs (ALBERT). False replaces B by a random segment in
        half of the pairs.
    """

    max_tokens: int
    short_seq_prob: float
    own_label: Literal[0, 1] = 1
    swaps_halves: bool = False


def index_sentences(documents: Documents) -> list[Document]:
    """Convert documents to lists of sentences. A sentence is a list of indices into ``documents.ids``.

    Unlike ids, indices let the caller look up word starts and count which ids were used.
    """
    sentences = [list(range(start, end)) for start, end in pairwise([0, *map(int, documents.sentence_ends)])]
    return [sentences[start:end] for start, end in pairwise([0, *map(int, documents.document_ends)])]


def find_segment_starts(starts: Sequence[int], places: list[int]) -> list[int]:
    """Return for each id of a segment 1 if a word starts there, else 0. The first id always starts a word.

    starts: word starts of all documents.
    places: indices of the segment's ids in the documents.
    """
    return [1, *(starts[place] for place in places[1:])] if places else []


def make_document_pairs(
    documents: list[Document], index: int, stream: RandomStream, rules: PairRules
) -> Iterator[Pair]:
    """Yield the pairs of segments of the document ``documents[index]``.

    The random draws of a pair happen when the pair is taken from the iterator, so the caller can draw its
    masks before the next pair is drawn. The first draws decide whether the document gets a shorter length,
    and which. Then each pair has these draws, in this order:
    1. where A ends, if there are several sentences
    2. whether B is random, or whether the segments are swapped
    3. the document and the sentence at which a random B starts
    4. a draw for each id to cut, which decides at which end
    """
    document = documents[index]
    target = rules.max_tokens
    if stream.random() < rules.short_seq_prob:
        target = stream.randint(2, rules.max_tokens)
    chunk: list[Sentence] = []
    place = 0
    while place < len(document):
        # A chunk is a run of sentences from which one pair is made. Collect sentences until they reach the
        # target length or the document ends.
        chunk.append(document[place])
        if place == len(document) - 1 or sum(map(len, chunk)) >= target:
            # A gets the first sentences of the chunk. At least one sentence is left for B if there are
            # several.
            a_end = stream.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a, b = _join_sentences(chunk[:a_end]), _join_sentences(chunk[a_end:])
            label = 0
            # If the chunk has one sentence, nothing is left for B. B is then always random, without a draw.
            if len(chunk) == 1 or (not rules.swaps_halves and stream.random() < 0.5):
                b, label = _draw_random_segment(documents, index, target - len(a), stream, rules)
                # B is random, so the sentences after A were not used. Go back, so that the next chunk starts
                # with them. For example, if the chunk has sentences 4 to 7 and A has 4 and 5, the next chunk
                # starts at 6.
                place -= len(chunk) - a_end
            elif rules.swaps_halves and stream.random() < 0.5:
                a, b, label = b, a, 1
            truncate_pair(a, b, rules.max_tokens, stream)
            yield a, b, label
            chunk = []
        place += 1


def _join_sentences(sentences: list[Sentence]) -> list[int]:
    """Concatenate the ids of several sentences."""
    return [token for sentence in sentences for token in sentence]


def _draw_random_segment(
    documents: list[Document], index: int, wanted: int, stream: RandomStream, rules: PairRules
) -> tuple[list[int], int]:
    """Draw a random segment B and return it with its label.

    B starts at a random sentence of another document. It has whole sentences until it reaches ``wanted`` ids
    or the document ends.
    """
    # Draw up to ten times to find another document. If all draws give this document, it is used anyway. Its
    # label is ``own_label``, because Google's program says that B is random, and NVIDIA's that it is not.
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
    """Shorten a and b in place until together they have at most max_tokens ids.

    Ids are removed one by one from the longer segment, or from b if both are equally long. A draw for each id
    decides whether the first or the last id of the segment is removed.
    """
    while len(a) + len(b) > max_tokens:
        longer = a if len(a) > len(b) else b
        del longer[0 if stream.random() < 0.5 else -1]
