"""The places of a context's tokens, which are character offsets, for every tokeniser that reports them.

The whole text is tokenised at once, so a token may include the blank before a word. The tokens of an answer
are those that overlap it. A predicted answer is the text that its tokens cover. Some letters are outside
every token, such as a combining accent that the normaliser has merged into the letter before it. They are
assigned to the token next to them.
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
"""For each token the offset of its first character in the text, and the offset after its last character.

The shape is (tokens, 2). Blanks at the ends of a token are not included.
"""


def locate_tokens(
    contexts: Sequence[Context], tokenizer: Tokenizer
) -> Iterator[tuple[list[int], npt.NDArray[Any], Places]]:
    """Yield for each context its token ids, the index of the word in which each token ends,
    and the tokens' places.
    """
    found = tokenizer.encode_each([context.text for context in contexts])
    assert found.starts is not None
    assert found.stops is not None
    ids, bounds = np.asarray(found.ids), [0, *found.ends]
    all_places = np.stack([np.asarray(found.starts, np.int64), np.asarray(found.stops, np.int64)], axis=1)
    for context, (first, stop) in zip(contexts, pairwise(bounds), strict=True):
        places = np.array(_extend_places(context.text, all_places[first:stop].tolist())).reshape(-1, 2)
        words = np.searchsorted(context.starts, places[:, 1] - 1, side="right") - 1
        yield ids[first:stop].tolist(), words.clip(min=0), places


def _extend_places(text: str, places: list[list[int]]) -> list[tuple[int, int]]:
    """Return the places of the tokens, without blanks at their ends, and extended to letters
    that no token covers.

    For example, the text is "cafe" followed by U+0301 (a combining accent). A tokeniser that normalises to
    NFC has a token for "é", but reports only the place of the "e". The place is then extended to the accent.
    places: start and end of each token, as the tokeniser reports them.
    """
    found: list[tuple[int, int]] = []
    done = 0  # offset at which the text covered by earlier tokens ends
    for number, (start, stop) in enumerate(places):
        start, stop = _trim_place(text, start, stop)
        if not text[start:stop].isspace():
            following = places[number + 1][0] if number + 1 < len(places) else len(text)
            while stop < following and (_is_letter(text[stop]) or _can_compose(text[start:stop], text[stop])):
                stop += 1
            while start > done and _is_letter(text[start - 1]):
                start -= 1
        found.append((start, stop))
        done = max(done, stop)
    return found


def _is_letter(character: str) -> bool:
    """Return True if the character is a cased letter, an accent or a digit.

    Ideographs and other letters without case do not count. A tokeniser without an unknown token may leave out
    many ideographs in a row. As Chinese has no blanks, a token's place would be extended to all of them.
    """
    kind = unicodedata.category(character)
    return kind[0] in "LMN" and kind != "Lo"


def _can_compose(text: str, character: str) -> bool:
    """Return True if NFC joins the text's last letter with the character.

    For example, it joins two Hangul jamo.
    """
    return len(unicodedata.normalize("NFC", text + character)) <= len(unicodedata.normalize("NFC", text))


def _trim_place(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the place without blanks at its ends. A place that contains only blanks stays unchanged."""
    part = text[start:stop]
    if not part.strip():
        return start, stop
    return stop - len(part.lstrip()), start + len(part.rstrip())


def find_answer_by_places(answer: Answer, context: Context, places: Places) -> tuple[int, int] | None:
    """Return the first and the last token that overlap the answer, or None if no token does.

    The data say at which offset the answer begins. If the text there differs, the answer is searched for in
    the words at that offset. If it is not found, because its blanks differ, all of these words are taken.
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


def extract_text_by_places(context: Context, places: Places, first: int, last: int) -> str:
    """Return the text from the first token to the last token."""
    return context.text[int(places[first, 0]) : int(places[last, 1])].strip()
