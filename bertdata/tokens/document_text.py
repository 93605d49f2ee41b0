"""A part's lines to the texts of its documents, and their ids to Documents: the specification for kernels.

A blank line (white space alone) ends a document, every other line is a sentence. The text of a document is
its sentences, joined by ``between``. It is encoded whole: a token may hold the blank before a word, or more.
A token belongs to the sentence in which its first character stands, and the characters of ``between`` belong
to the sentence behind them.
"""

import io
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bertdata.errors import InputError
from bertdata.io.file_kind import utf8_remedy
from bertdata.records import Documents, Vocabulary


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's text, and where each of its sentences ends in it (in code points)."""

    text: str
    ends: list[int]


def read_documents(data: bytes, between: str) -> Iterator[DocumentText]:
    r"""The documents of UTF-8 text whose only line end is ``\n``. UnicodeDecodeError for other bytes.

    >>> [(found.text, found.ends) for found in read_documents(b"One.\nTwo.\n\nThree.\n", " ")]
    [('One. Two.', [4, 9]), ('Three.', [6])]
    """
    sentences: list[str] = []
    for line in io.BytesIO(data):
        sentence = line.decode().removesuffix("\n")
        if sentence.strip():
            sentences.append(sentence)
        elif sentences:
            yield _joined(sentences, between)
            sentences = []
    if sentences:
        yield _joined(sentences, between)


def _joined(sentences: list[str], between: str) -> DocumentText:
    ends, end = [], -len(between)
    for sentence in sentences:
        end += len(between) + len(sentence)
        ends.append(end)
    return DocumentText(between.join(sentences), ends)


def word_starts(word_ids: Sequence[int | None]) -> bytes:
    """A byte for each token of a text: 1 where a word starts.

    word_ids: the library's, None at special tokens.


    >>> list(word_starts([0, 0, None, None, 1, 2, 2]))
    [1, 0, 1, 1, 1, 1, 0]
    """
    before = chain((None,), word_ids)
    return bytes(word is None or word != last for word, last in zip(word_ids, before, strict=False))


class DocumentsBuilder:
    """Collects the ids of documents, one document after another."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids = array("I" if vocabulary.wide else "H")
        self._sentence_ends, self._document_ends = array("I"), array("I")
        self._word_starts = bytearray() if vocabulary.continues_word is None else None

    def add(
        self, document: DocumentText, ids: list[int], starts: Sequence[int], is_start: bytes | None
    ) -> None:
        """Add a document's ids. starts: of each the place of its first character, ascending.

        is_start: word_starts of the ids; None where the vocabulary tells them.
        """
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

    def documents(self) -> Documents:
        """All documents so far."""
        unknown = self._vocabulary.unk
        return Documents(
            ids=self._ids,
            sentence_ends=self._sentence_ends,
            document_ends=self._document_ends,
            unknown=None if unknown is None else self._ids.count(unknown),
            word_starts=None if self._word_starts is None else memoryview(self._word_starts),
        )


def not_utf8(texts: list[bytes], names: list[str]) -> InputError:
    """The error for the first text that is not UTF-8."""
    for text, name in zip(texts, names, strict=True):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return InputError.not_utf8(name, text, error.start, utf8_remedy(text, name))
    raise AssertionError("each text is UTF-8")
