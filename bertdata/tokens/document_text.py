"""Joins the lines of a file to documents for encoding, and later divides each document's tokens into
sentences.

A blank line ends a document, and every other line is a sentence. The sentences of a document are joined by a
text called ``between`` and encoded together, because a token may include the blank before a word. A token
belongs to the sentence that contains the token's first character. The characters of ``between`` belong to the
sentence after them. The C++ kernels do the same.
"""

import io
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bertdata.errors import InputError
from bertdata.io.file_kind import suggest_utf8_remedy
from bertdata.records import Documents, Vocabulary


@dataclass(frozen=True, slots=True)
class DocumentText:
    """Text of a document, with its sentences joined.

    ends: index after the last character of each sentence, in code points.
    """

    text: str
    ends: list[int]


def read_documents(data: bytes, between: str) -> Iterator[DocumentText]:
    r"""Read documents from UTF-8 data in which ``\n`` is the only line end, and yield them in order.

    UnicodeDecodeError for data that are not UTF-8.
    between: text that is put between two sentences of a document.

    >>> [(found.text, found.ends) for found in read_documents(b"One.\nTwo.\n\nThree.\n", " ")]
    [('One. Two.', [4, 9]), ('Three.', [6])]
    """
    sentences: list[str] = []
    for line in io.BytesIO(data):
        sentence = line.decode().removesuffix("\n")
        if sentence.strip():
            sentences.append(sentence)
        elif sentences:
            yield _join_sentences(sentences, between)
            sentences = []
    if sentences:
        yield _join_sentences(sentences, between)


def _join_sentences(sentences: list[str], between: str) -> DocumentText:
    """Join a document's sentences to one text, and note where each sentence ends."""
    ends, end = [], -len(between)
    for sentence in sentences:
        end += len(between) + len(sentence)
        ends.append(end)
    return DocumentText(between.join(sentences), ends)


def compute_word_starts(word_ids: Sequence[int | None]) -> bytes:
    """Return one byte for each token of a text: 1 if a word starts at this token, otherwise 0.

    word_ids: for each token, the number of the word that it belongs to, as ``tokenizers`` reports it. A
        special token has None instead of a number, and counts as the start of a word.

    >>> list(compute_word_starts([0, 0, None, None, 1, 2, 2]))
    [1, 0, 1, 1, 1, 1, 0]
    """
    before = chain((None,), word_ids)
    return bytes(word is None or word != last for word, last in zip(word_ids, before, strict=False))


class DocumentsBuilder:
    """Object that builds a Documents object from the token ids of one document after another."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids = array("I" if vocabulary.wide else "H")
        self._sentence_ends, self._document_ends = array("I"), array("I")
        self._word_starts = bytearray() if vocabulary.continues_word is None else None

    def add(
        self, document: DocumentText, ids: list[int], starts: Sequence[int], is_start: bytes | None
    ) -> None:
        """Add the ids of a document, and divide them into the document's sentences.

        ids: ids of the document's tokens.
        starts: index of each token's first character in the document's text, in ascending order.
        is_start: one byte for each id, 1 if a word starts there, otherwise 0. None if the vocabulary shows
            which ids start a word.
        """
        # A sentence without ids (upto == before) is left out, and so is a document without ids.
        first, before = len(self._ids), 0
        for end in document.ends[:-1]:
            if (upto := bisect_left(starts, end)) > before:
                before = upto
                self._sentence_ends.append(first + upto)
        if len(ids) > before:
            self._sentence_ends.append(first + len(ids))
        if ids:
            self._document_ends.append(len(self._sentence_ends))
        self._ids.extend(ids)
        if self._word_starts is not None:
            assert is_start is not None
            self._word_starts += is_start

    def build(self) -> Documents:
        """Return everything added so far as one Documents object."""
        unknown = self._vocabulary.unk
        return Documents(
            ids=self._ids,
            sentence_ends=self._sentence_ends,
            document_ends=self._document_ends,
            unknown=None if unknown is None else self._ids.count(unknown),
            word_starts=None if self._word_starts is None else memoryview(self._word_starts),
        )


def make_utf8_error(texts: list[bytes], names: list[str]) -> InputError:
    """Return the InputError for the first text that is not UTF-8. It names the text and the line."""
    for text, name in zip(texts, names, strict=True):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return InputError.not_utf8(name, text, error.start, suggest_utf8_remedy(text, name))
    raise AssertionError("each text is UTF-8")
