"""Joins a file's lines to documents before encoding, and finds the documents' sentences afterwards.

A blank line ends a document, and every other line is a sentence. A document's sentences are joined by the
text ``between`` and encoded as one text, because a token may include the blank before a word. A token belongs
to the sentence that contains its first character. The characters of ``between`` belong to the sentence after
them. The C++ kernels do the same.
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
    """Text of a document.

    ends: index in the text (in code points) where each sentence ends.
    """

    text: str
    ends: list[int]


def read_documents(data: bytes, between: str) -> Iterator[DocumentText]:
    r"""Yield the documents of UTF-8 data whose only line end is ``\n``. UnicodeDecodeError for other bytes.

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
    """Return a byte for each token of a text: 1 if a word starts there.

    word_ids: for each token, the number of the word that it belongs to, as ``tokenizers`` reports it. None
    for special tokens.

    >>> list(compute_word_starts([0, 0, None, None, 1, 2, 2]))
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
        """Add a document's ids and divide them into sentences.

        starts: index of each token's first character in the document's text, ascending.
        is_start: for each id 1 if a word starts there, else 0. None if the vocabulary says which ids start a
        word.
        """
        # A sentence without ids (upto == before) gets no entry, and a document without ids gets none either.
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
    """Make the InputError for the first of the texts that is not UTF-8, with its name and line."""
    for text, name in zip(texts, names, strict=True):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return InputError.not_utf8(name, text, error.start, suggest_utf8_remedy(text, name))
    raise AssertionError("each text is UTF-8")
