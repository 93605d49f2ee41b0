"""The byte-level BPE tokeniser: texts to documents of token ids, by the kernel or its readable twin."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import InputError, SettingsError
from bertdata.io.file_kind import utf8_remedy
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.bpe.kernel import make_kernel
from bertdata.tokens.bpe.recognition import recognise
from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.tokens.lines import join_inputs
from bertdata.tokens.tokenizer import TextTokens


class ByteBpeTokenizer:
    """The byte-level BPE of a tokenizer.json. Keeps a cache of words between texts.

    parsed: the file, or what ``recognise`` made of it. between: what stands between the sentences of a
    document. SettingsError where the file is not one that the kernel knows.
    """

    def __init__(
        self,
        parsed: Mapping[str, Any] | ByteBpe,
        vocabulary: Vocabulary,
        *,
        between: str = " ",
        engine: Engine | None = None,
    ) -> None:
        bpe = parsed if isinstance(parsed, ByteBpe) else recognise(parsed)
        if isinstance(bpe, str):
            raise SettingsError(f"{vocabulary.name}: {bpe}, which the kernel of byte-level BPE does not know")
        self.vocabulary = vocabulary
        self._bpe = bpe
        self._between = between
        self._splitter: Any = None
        self._kernel: Any = None
        if use_native(engine or default_engine()):
            self._kernel = make_kernel(bpe, vocabulary)
        else:
            # Imported here: the kernel needs none of it.
            from bertdata.tokens.bpe.tokens import TextSplitter

            self._splitter = TextSplitter(bpe)

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        r"""The documents of several UTF-8 texts read as one sequence.

        ``\n``, ``\r\n`` and ``\r`` end a line; a line of white space ends a document, any other is a sentence.
        A document is tokenised whole, its sentences joined; a token is of the sentence in which its first
        character stands, what is between two sentences being the second's. No boundary is added between
        texts. InputError names file and line of a byte that is not UTF-8.
        """
        texts = [_normalize_newlines(text) for text in texts]
        if self._kernel is not None:
            try:
                found = self._kernel.tokenize(join_inputs(texts), self._between.encode())
            except kernels.InvalidUtf8:
                pass  # which input and which line: said below
            else:
                ids, sentence_ends, document_ends, word_starts, unknown = found
                return Documents(
                    ids=ids,
                    sentence_ends=sentence_ends,
                    document_ends=document_ends,
                    unknown=unknown,
                    word_starts=word_starts,
                )
        for text, name in zip(texts, names, strict=True):
            _check_utf8(text, name)
        return self._specification(join_inputs(texts).decode().split("\n"))

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """The tokens of each text by itself, with their places in it. A text may have none.

        UnicodeEncodeError for half a surrogate pair, which is no character.
        """
        data = [text.encode() for text in texts]
        if self._kernel is not None:
            ends = array("I", accumulate(map(len, data)))
            return TextTokens(*self._kernel.tokenize_each(b"".join(data), ends))
        ids, word_starts = self._new_ids(), array("B")
        ends, starts, stops = array("I"), array("I"), array("I")
        for text in texts:
            for token in self._splitter.split_trimmed(text):
                ids.append(token.id)
                starts.append(token.start)
                stops.append(token.stop)
                word_starts.append(token.starts_word)
            ends.append(len(ids))
        return TextTokens(ids, ends, starts, stops, word_starts)

    def _specification(self, lines: list[str]) -> Documents:
        ids, word_starts, sentence_ends, document_ends = self._new_ids(), array("B"), array("I"), array("I")
        sentences: list[str] = []
        for line in [*lines, ""]:
            if line.strip():
                sentences.append(line)
                continue
            joined = [
                sentence if not place else self._between + sentence
                for place, sentence in enumerate(sentences)
            ]
            starts = [0, *accumulate(map(len, joined))][:-1]
            last = 0
            for token in self._splitter.split("".join(joined)):
                sentence = bisect_right(starts, token.start) - 1
                if sentence > last:
                    _close(sentence_ends, len(ids))
                    last = sentence
                ids.append(token.id)
                word_starts.append(token.starts_word)
            _close(sentence_ends, len(ids))
            _close(document_ends, len(sentence_ends))
            sentences.clear()
        unk = self.vocabulary.unk
        return Documents(
            ids=ids,
            sentence_ends=sentence_ends,
            document_ends=document_ends,
            unknown=None if unk is None else ids.count(unk),
            word_starts=word_starts,
        )

    def _new_ids(self) -> "array[int]":
        return array("I" if self.vocabulary.wide else "H")


def _close(ends: "array[int]", end: int) -> None:
    """End a sentence or a document, unless it is empty."""
    if end > (ends[-1] if ends else 0):
        ends.append(end)


def _normalize_newlines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _check_utf8(text: bytes, name: str) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise InputError.not_utf8(name, text, error.start, utf8_remedy(text, name)) from None
