"""WordPiece tokeniser for Chinese text that also records where words start.

A segmenter (the package jieba) decides where Chinese words start. Any other word starts where a token does
not begin with ``##``.
"""

from dataclasses import replace
from functools import cached_property

from bertdata._native import Engine
from bertdata.config.dialects import Dialect
from bertdata.records import Documents
from bertdata.tokens.basic import split_words
from bertdata.tokens.chinese_words import ChineseWords
from bertdata.tokens.lines import drop_bad_utf8, join_inputs, normalize_newlines
from bertdata.tokens.pieces import split_pieces
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from bertdata.unicode.characters import is_ideograph


class ChineseWordPieceTokenizer(WordPieceTokenizer):
    """WordPiece tokeniser whose documents say for each token id whether a word starts there."""

    def __init__(
        self,
        vocabulary: WordPieceVocabulary,
        dialect: Dialect,
        *,
        lower_case: bool,
        keep_accents: bool = False,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(vocabulary, dialect, lower_case=lower_case, keep_accents=keep_accents, engine=engine)
        assert vocabulary.continues_word is not None
        self._continues_word = vocabulary.continues_word
        self.vocabulary = replace(vocabulary, continues_word=None)

    @cached_property
    def _words(self) -> ChineseWords:
        """The segmenter, which is loaded when it is first used."""
        return ChineseWords()

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode several UTF-8 texts like WordPieceTokenizer.encode, and record where words start.

        Raises MissingExtraError if the text contains Chinese and jieba is not installed.
        """
        documents = super().encode(texts, names)
        data = join_inputs([drop_bad_utf8(normalize_newlines(text, self._dialect)) for text in texts])
        lines = data.decode().split("\n")
        starts = b"".join(map(self._find_word_starts, lines, self.encode_each(lines).lists()))
        return replace(documents, word_starts=starts)

    def _find_word_starts(self, line: str, ids: list[int]) -> bytes:
        """Return one byte for each id of the line: 1 if a word starts at this id, otherwise 0."""
        starts = bytearray(1 - self._continues_word[token] for token in ids)
        if any(map(is_ideograph, line)):
            ideograph_starts = (
                start
                for character, start in zip(line, self._words.find_word_starts(line), strict=True)
                if is_ideograph(character)
            )
            # WordPiece makes each ideograph a word with exactly one id, so the ideographs of the line and
            # their ids are in the same order. Go through the words of the line to find the positions of these
            # ids.
            place = 0
            for word in split_words(line, self._dialect, self._lower_case, self._keep_accents):
                if is_ideograph(word[0]):
                    starts[place] = next(ideograph_starts)
                place += len(split_pieces(word, self.vocabulary, self._dialect.max_word_chars))
        return bytes(starts)
