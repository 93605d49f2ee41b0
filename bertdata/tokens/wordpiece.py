"""The WordPiece tokeniser: lines of text to documents of token ids, by the kernel or its readable twin."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.config.dialects import Dialect
from bertdata.errors import InputError, VocabularyError
from bertdata.io.file_kind import utf8_remedy
from bertdata.records import Documents
from bertdata.tokens.lines import drop_bad_utf8, join_inputs, normalize_newlines
from bertdata.tokens.tokenizer import TextTokens
from bertdata.tokens.vocabulary import WordPieceVocabulary


class WordPieceTokenizer:
    """BERT's tokeniser of 2018 as one dialect applies it. Keeps a cache of words between texts.

    keep_accents: text that is lower-cased keeps its accents, which the original strips.
    """

    def __init__(
        self,
        vocabulary: WordPieceVocabulary,
        dialect: Dialect,
        *,
        lower_case: bool,
        keep_accents: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self._dialect = dialect
        self._lower_case = lower_case
        self._keep_accents = keep_accents
        self._kernel: Any = self._make_kernel() if use_native(engine or default_engine()) else None

    def _make_kernel(self) -> Any:
        try:
            return kernels.Tokenizer(
                tokens=list(self.vocabulary.ids),
                ids=list(self.vocabulary.ids.values()),
                unknown=self.vocabulary.unk,
                lower_case=self._lower_case,
                strips_accents=self._lower_case and not self._keep_accents,
                drops_unassigned=self._dialect.drops_unassigned,
                keeps_special_tokens=self._dialect.keeps_special_tokens,
                max_word_chars=self._dialect.max_word_chars,
            )
        except ValueError as error:
            raise VocabularyError(f"the {error}; expected words, one a line") from None

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """The documents of several UTF-8 texts read as one sequence.

        A blank line ends a document, any other line is a sentence unless it yields no id; documents
        without sentences are dropped. No boundary is added between texts. InputError names file and
        line of a byte that is not UTF-8, where the dialect does not drop it.
        """
        texts = [normalize_newlines(text, self._dialect) for text in texts]
        if self._kernel is not None:
            try:
                return self._kernel_documents(join_inputs(texts))
            except kernels.InvalidUtf8:
                pass  # which input, which line, and whether that matters: settled below
        texts = [self._valid_utf8(text, name) for text, name in zip(texts, names, strict=True)]
        joined = join_inputs(texts)
        if self._kernel is not None:
            return self._kernel_documents(joined)
        return self._specification(joined.decode().split("\n"))

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """The ids of each text by itself, without sentences. A text may have none.

        Of the words of a text this tells the word that each id comes from. UnicodeEncodeError for half a
        surrogate pair, which is no character.
        """
        data = [text.encode() for text in texts]
        if self._kernel is not None:
            ends = array("I", accumulate(map(len, data)))
            return TextTokens(*self._kernel.tokenize_each(b"".join(data), ends))
        ids, id_ends = array("I" if self.vocabulary.wide else "H"), array("I")
        for text in texts:
            ids.extend(self._pieces(text))
            id_ends.append(len(ids))
        return TextTokens(ids, id_ends)

    def _kernel_documents(self, text: bytes) -> Documents:
        ids, sentence_ends, document_ends, unknown, _ = self._kernel.tokenize(text)
        return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends, unknown=unknown)

    def _valid_utf8(self, text: bytes, name: str) -> bytes:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            if not self._dialect.drops_bad_utf8:
                raise InputError.not_utf8(name, text, error.start, utf8_remedy(text, name)) from None
            return drop_bad_utf8(text)
        return text

    def _pieces(self, text: str) -> list[int]:
        """The ids of a text, by the specification."""
        # Imported here: the Unicode tables take longer to load than a small part takes the kernel.
        from bertdata.tokens.basic import split_words
        from bertdata.tokens.pieces import split_pieces

        words = split_words(text, self._dialect, self._lower_case, self._keep_accents)
        return [
            piece
            for word in words
            for piece in split_pieces(word, self.vocabulary, self._dialect.max_word_chars)
        ]

    def _specification(self, lines: Iterable[str]) -> Documents:
        ids = array("I" if self.vocabulary.wide else "H")
        sentence_ends, document_ends = array("I"), array("I")
        closed = 0
        for line in [*lines, ""]:
            if not line.strip():
                if len(sentence_ends) > closed:
                    closed = len(sentence_ends)
                    document_ends.append(closed)
                continue
            before = len(ids)
            ids.extend(self._pieces(line))
            if len(ids) > before:
                sentence_ends.append(len(ids))
        unknown = ids.count(self.vocabulary.unk)
        return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends, unknown=unknown)


def tokenize(
    text: bytes,
    vocabulary: WordPieceVocabulary,
    dialect: Dialect,
    *,
    lower_case: bool = True,
    name: str = "text",
    engine: Engine | None = None,
) -> Documents:
    """The documents of one UTF-8 text. See WordPieceTokenizer.encode."""
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=lower_case, engine=engine)
    return tokenizer.encode([text], [name])
