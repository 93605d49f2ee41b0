"""WordPiece tokeniser: turns lines of text into documents of token ids, in C++ or in pure Python."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.config.dialects import Dialect
from bertdata.errors import InputError, VocabularyError
from bertdata.io.file_kind import suggest_utf8_remedy
from bertdata.records import Documents
from bertdata.tokens.lines import drop_bad_utf8, join_inputs, normalize_newlines
from bertdata.tokens.tokenizer import TextTokens
from bertdata.tokens.vocabulary import WordPieceVocabulary


class WordPieceTokenizer:
    """BERT's tokeniser of 2018, with the rules of a dialect (a program whose output is reproduced).

    The ids of frequent words are cached from one text to the next.

    lower_case: convert text to lower case.
    keep_accents: keep the accents of lower-cased text. BERT's program of 2018 removes them.
    engine: "native" for C++, "python" for pure Python, None for C++ if it is built.
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
        """Make the C++ kernel with the settings of this tokeniser."""
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
        """Encode several UTF-8 texts as if they were one file.

        A blank line ends a document, and every other line is a sentence. Sentences without ids and documents
        without sentences are dropped. No boundary is added between two texts.

        names: names of the texts, for error messages.

        Raises InputError for bytes that are not UTF-8, unless the dialect drops them. It names the file and
        the line.
        """
        texts = [normalize_newlines(text, self._dialect) for text in texts]
        if self._kernel is not None:
            try:
                return self._encode_in_kernel(join_inputs(texts))
            except kernels.InvalidUtf8:
                pass  # The code below finds the text and the line of the bad byte.
        texts = [self._check_utf8(text, name) for text, name in zip(texts, names, strict=True)]
        joined = join_inputs(texts)
        if self._kernel is not None:
            return self._encode_in_kernel(joined)
        return self._encode_in_python(joined.decode().split("\n"))

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately, without dividing it into sentences. A text may have no ids.

        The result has no positions.
        Raises UnicodeEncodeError if a text contains half a surrogate pair, which is not a character.
        """
        data = [text.encode() for text in texts]
        if self._kernel is not None:
            ends = array("I", accumulate(map(len, data)))
            return TextTokens(*self._kernel.tokenize_each(b"".join(data), ends))
        ids, id_ends = array("I" if self.vocabulary.wide else "H"), array("I")
        for text in texts:
            ids.extend(self._split_text(text))
            id_ends.append(len(ids))
        return TextTokens(ids, id_ends)

    def _encode_in_kernel(self, text: bytes) -> Documents:
        """Encode a text with the C++ kernel."""
        ids, sentence_ends, document_ends, unknown, _ = self._kernel.tokenize(text)
        return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends, unknown=unknown)

    def _check_utf8(self, text: bytes, name: str) -> bytes:
        """Return the text if it is valid UTF-8.

        For other bytes, the dialect decides whether they are removed or InputError is raised.
        """
        try:
            text.decode()
        except UnicodeDecodeError as error:
            if not self._dialect.drops_bad_utf8:
                raise InputError.not_utf8(name, text, error.start, suggest_utf8_remedy(text, name)) from None
            return drop_bad_utf8(text)
        return text

    def _split_text(self, text: str) -> list[int]:
        """Return the token ids of a text in pure Python. The text may have several words."""
        # These modules are imported only here, because they load Unicode tables. That takes longer than
        # encoding a small file in C++.
        from bertdata.tokens.basic import split_words
        from bertdata.tokens.pieces import split_pieces

        words = split_words(text, self._dialect, self._lower_case, self._keep_accents)
        return [
            piece
            for word in words
            for piece in split_pieces(word, self.vocabulary, self._dialect.max_word_chars)
        ]

    def _encode_in_python(self, lines: Iterable[str]) -> Documents:
        """Encode the lines of a text in pure Python. The result is the same as that of the C++ kernel."""
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
            ids.extend(self._split_text(line))
            if len(ids) > before:
                sentence_ends.append(len(ids))
        unknown = ids.count(self.vocabulary.unk)
        return Documents(ids=ids, sentence_ends=sentence_ends, document_ends=document_ends, unknown=unknown)


def tokenize_text(
    text: bytes,
    vocabulary: WordPieceVocabulary,
    dialect: Dialect,
    *,
    lower_case: bool = True,
    name: str = "text",
    engine: Engine | None = None,
) -> Documents:
    """Encode a UTF-8 text with a WordPiece vocabulary.

    A line is a sentence, and a blank line ends a document.

    name: name of the text, for error messages.
    engine: "native" for C++, "python" for pure Python, None for C++ if it is built.
    """
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=lower_case, engine=engine)
    return tokenizer.encode([text], [name])
