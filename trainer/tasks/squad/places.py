"""A context's tokens by their places in its text, for every tokeniser that tells these.

The text is encoded whole, so that a token may hold the blank before a word. An answer's tokens are those
that hold a character of it, and a predicted answer is the text that its tokens stand for. No letter is lost:
what a normaliser joins to the letter before it (an accent of its own), or leaves out, belongs to the token
next to it.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bertdata.tokens.tokenizer import Tokenizer
from trainer.tasks.squad.reading import Answer, Context

Places = npt.NDArray[np.int64]
"""(tokens, 2): first character of each token in the text, and the one behind its last; blanks left out."""


def tokens_by_places(
    contexts: Sequence[Context], tokenizer: Tokenizer
) -> Iterator[tuple[list[int], npt.NDArray[Any], Places]]:
    """Of each context the ids, the word that each token ends in, and the places."""
    found = tokenizer.encode_each([context.text for context in contexts])
    assert found.starts is not None
    assert found.stops is not None
    ids, bounds = np.asarray(found.ids), [0, *found.ends]
    all_places = np.stack([np.asarray(found.starts, np.int64), np.asarray(found.stops, np.int64)], axis=1)
    for context, (first, stop) in zip(contexts, pairwise(bounds), strict=True):
        places = np.array(_whole_places(context.text, all_places[first:stop].tolist())).reshape(-1, 2)
        words = np.searchsorted(context.starts, places[:, 1] - 1, side="right") - 1
        yield ids[first:stop].tolist(), words.clip(min=0), places


def _whole_places(text: str, places: list[list[int]]) -> list[tuple[int, int]]:
    """Return each token's place without blanks at its ends, and with the letters that no token tells.

    A tokeniser with NFC tells for the "é" of "cafe" + U+0301 the place of its "e" alone.
    """
    found: list[tuple[int, int]] = []
    done = 0  # end of what the tokens before stand for
    for number, (start, stop) in enumerate(places):
        start, stop = _trimmed(text, start, stop)
        if not text[start:stop].isspace():
            following = places[number + 1][0] if number + 1 < len(places) else len(text)
            while stop < following and (_is_letter(text[stop]) or _composes(text[start:stop], text[stop])):
                stop += 1
            while start > done and _is_letter(text[start - 1]):
                start -= 1
        found.append((start, stop))
        done = max(done, stop)
    return found


def _is_letter(character: str) -> bool:
    """Return True for a letter, an accent or a digit.

    Ideographs and others without case are none: a model without an unknown token may leave out many in a row,
    and in Chinese no blank would end them.
    """
    kind = unicodedata.category(character)
    return kind[0] in "LMN" and kind != "Lo"


def _composes(text: str, character: str) -> bool:
    """Return True where NFC makes one letter of the text's end and the character, as of two Hangul jamo."""
    return len(unicodedata.normalize("NFC", text + character)) <= len(unicodedata.normalize("NFC", text))


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    """The place without blanks at its ends, or all of it where it is nothing else."""
    part = text[start:stop]
    if not part.strip():
        return start, stop
    return stop - len(part.lstrip()), start + len(part.rstrip())


def answer_by_places(answer: Answer, context: Context, places: Places) -> tuple[int, int] | None:
    """First and last token that hold a character of the answer. None where none does.

    The answer is where the data say. Where another text is there, it is looked for in its words; where these
    have other blanks than it, it is all of them.
    """
    first = context.starts[answer.first_word]
    last = context.starts[answer.last_word] + len(context.words[answer.last_word])
    text = answer.text.strip()
    if context.text.startswith(answer.text, answer.start):
        found = answer.start + answer.text.index(text)
    else:
        found = context.text.find(text, first, last)
    if found >= 0:
        first, last = found, found + len(text)
    inside = np.flatnonzero((places[:, 1] > first) & (places[:, 0] < last))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def text_by_places(context: Context, places: Places, first: int, last: int) -> str:
    """The text from the first token to the last."""
    return context.text[int(places[first, 0]) : int(places[last, 1])].strip()
