"""Masked words: choosing the positions of an example to mask, and their replacements.

Shared by the objectives that mask as BERT does (Devlin et al. 2018); twin of the masks in
_native/examples/bert.h.
"""

from dataclasses import dataclass

from bertdata.examples.random_stream import RandomStream
from bertdata.records import Vocabulary


@dataclass(frozen=True, slots=True)
class Masked:
    """An example's ids with masks applied, the masked positions, ascending, and their original ids."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask(
    original: list[int], vocabulary: Vocabulary, wanted: int, whole_words: bool, stream: RandomStream
) -> Masked:
    """The ids with at most ``wanted`` of them masked.

    Candidates (positions, or whole words) are shuffled and taken until enough positions are masked.
    A taken position becomes [MASK] with probability 0.8, stays as it is with 0.1, becomes a random
    token of the vocabulary with 0.1; its label is the original id.
    """
    candidates = _candidates(original, vocabulary, whole_words)
    stream.shuffle(candidates)
    masked: dict[int, int] = {}
    for word in candidates:
        if len(masked) >= wanted:
            break
        if len(masked) + len(word) > wanted:
            continue
        for position in word:
            masked[position] = _replacement(original[position], vocabulary, stream)
    positions = sorted(masked)
    ids = list(original)
    for position in positions:
        ids[position] = masked[position]
    return Masked(ids, positions, [original[position] for position in positions])


def share_of(length: int, masked_lm_prob: float, most: int) -> int:
    """Number of ids to mask: their share, rounded half to even, at least 1, at most ``most``."""
    return min(most, max(1, round(length * masked_lm_prob)))


def _candidates(ids: list[int], vocabulary: Vocabulary, whole_words: bool) -> list[list[int]]:
    """Groups of positions that are masked together; [CLS] and [SEP] belong to none.

    With whole words, a piece that continues a word joins the candidate before it, if there is one.
    """
    candidates: list[list[int]] = []
    for position, token in enumerate(ids):
        if token in (vocabulary.cls, vocabulary.sep):
            continue
        if whole_words and candidates and vocabulary.continues_word[token]:
            candidates[-1].append(position)
        else:
            candidates.append([position])
    return candidates


def _replacement(original: int, vocabulary: Vocabulary, stream: RandomStream) -> int:
    if stream.random() < 0.8:
        return vocabulary.mask
    if stream.random() < 0.5:
        return original
    return vocabulary.replacements[stream.below(len(vocabulary.replacements))]
