"""Byte-level BPE tokeniser: turns texts into documents of token ids, in C++ or in pure Python."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import SettingsError
from bertdata.io.foreign_text import replace_line_ends
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.bpe.kernel import make_kernel
from bertdata.tokens.bpe.recognition import recognise_byte_bpe
from bertdata.tokens.bpe.settings import ByteBpe
from bertdata.tokens.document_text import DocumentsBuilder, make_utf8_error, read_documents
from bertdata.tokens.lines import join_inputs
from bertdata.tokens.tokenizer import TextTokens


class ByteBpeTokenizer:
    """Byte-level BPE tokeniser of a tokenizer.json.

    The tokens of frequent words are cached from one text to the next.

    parsed: the parsed file, or the settings that ``recognise_byte_bpe`` has read from it.
    between: text that is put between two sentences of a document before encoding.

    Raises SettingsError if the C++ kernel does not support the file.
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
            # This module is imported only here, because it loads large tables that the C++ kernel does not
            # need.
            from bertdata.tokens.bpe.tokens import TextSplitter

            self._splitter = TextSplitter(bpe)

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode several UTF-8 texts as if they were one file.

        Each line is a sentence, and a blank line ends a document.

        names: names of the texts, for error messages.

        Raises InputError for bytes that are not UTF-8. It names the file and the line.
        """
        texts = [replace_line_ends(text) for text in texts]
        if self._kernel is not None:
            try:
                found = self._kernel.tokenize(join_inputs(texts), self._between.encode())
            except kernels.InvalidUtf8:
                raise make_utf8_error(texts, names) from None
            ids, sentence_ends, document_ends, word_starts, unknown = found
            return Documents(
                ids=ids,
                sentence_ends=sentence_ends,
                document_ends=document_ends,
                unknown=unknown,
                word_starts=word_starts,
            )
        return self._encode_in_python(texts, names)

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately, and return the position of each token in its text.

        A text may have no tokens.
        Raises UnicodeEncodeError if a text contains half a surrogate pair, which is not a character.
        """
        data = [text.encode() for text in texts]
        if self._kernel is not None:
            ends = array("I", accumulate(map(len, data)))
            return TextTokens(*self._kernel.tokenize_each(b"".join(data), ends))
        ids, word_starts = self._make_id_array(), array("B")
        ends, starts, stops = array("I"), array("I"), array("I")
        for text in texts:
            for token in self._splitter.split(text):
                ids.append(token.id)
                starts.append(token.start)
                stops.append(token.stop)
                word_starts.append(token.starts_word)
            ends.append(len(ids))
        return TextTokens(ids, ends, starts, stops, word_starts)

    def _encode_in_python(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode the texts in pure Python. The result is the same as that of the C++ kernel."""
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
            raise make_utf8_error(texts, names) from None
        return found.build()

    def _make_id_array(self) -> "array[int]":
        """Return an empty array for ids, with 32 bits per id if the vocabulary needs them, otherwise 16."""
        return array("I" if self.vocabulary.wide else "H")
