"""The byte-level BPE tokeniser: texts to documents of token ids, by the kernel or its readable twin."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import SettingsError
from bertdata.io.foreign_text import universal_newlines
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.bpe.kernel import make_kernel
from bertdata.tokens.bpe.recognition import recognise_byte_bpe
from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.tokens.document_text import DocumentsBuilder, not_utf8, read_documents
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
        bpe = parsed if isinstance(parsed, ByteBpe) else recognise_byte_bpe(parsed)
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
        """The documents of several UTF-8 texts read as one sequence. See ``tokens.document_text``.

        InputError names file and line of a byte that is not UTF-8.
        """
        texts = [universal_newlines(text) for text in texts]
        if self._kernel is not None:
            try:
                found = self._kernel.tokenize(join_inputs(texts), self._between.encode())
            except kernels.InvalidUtf8:
                raise not_utf8(texts, names) from None
            ids, sentence_ends, document_ends, word_starts, unknown = found
            return Documents(
                ids=ids,
                sentence_ends=sentence_ends,
                document_ends=document_ends,
                unknown=unknown,
                word_starts=word_starts,
            )
        return self._specification(texts, names)

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
            for token in self._splitter.split(text):
                ids.append(token.id)
                starts.append(token.start)
                stops.append(token.stop)
                word_starts.append(token.starts_word)
            ends.append(len(ids))
        return TextTokens(ids, ends, starts, stops, word_starts)

    def _specification(self, texts: list[bytes], names: list[str]) -> Documents:
        found = DocumentsBuilder(self.vocabulary)
        try:
            for document in read_documents(join_inputs(texts), self._between):
                tokens = list(self._splitter.split(document.text))
                found.add(
                    document,
                    [token.id for token in tokens],
                    [token.start for token in tokens],
                    bytes(token.starts_word for token in tokens),
                )
        except UnicodeDecodeError:
            raise not_utf8(texts, names) from None
        return found.documents()

    def _new_ids(self) -> "array[int]":
        return array("I" if self.vocabulary.wide else "H")
