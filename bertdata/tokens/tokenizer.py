"""Interface of all tokenisers. The code that uses token ids depends only on this interface."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from bertdata.records import Buffer, Documents, Vocabulary


class TextTokens(NamedTuple):
    """Token ids of several texts, one text after another.

    ids: token ids of all texts.
    ends: for each text, the index in ``ids`` after its last token. Text i is ``ids[ends[i - 1]:ends[i]]``,
        and the first text starts at 0.
    starts: index of the first character of each token in its text, in code points (uint32). None if the
        tokeniser does not report positions.
    stops: index after the last character of each token. Blanks that the token includes are counted.
    word_starts: one byte for each token, 1 if a word starts there, otherwise 0. None if the tokeniser does
        not report it.
    """

    ids: Buffer
    ends: Buffer
    starts: Buffer | None = None
    stops: Buffer | None = None
    word_starts: Buffer | None = None

    def lists(self) -> Iterator[list[int]]:
        """Yield the token ids of each text as a list."""
        ids = list(self.ids)
        return (ids[start:end] for start, end in pairwise(chain((0,), self.ends)))


class Tokenizer(Protocol):
    """Interface of a tokeniser.

    ``vocabulary`` has the name and md5 that identify the tokeniser, and everything that the code for training
    examples needs to know about ids: the special tokens, which ids continue a word, and which ids may be
    drawn as random replacements.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode several texts as if they were one file.

        A blank line ends a document, and every other line is a sentence. Sentences without ids and documents
        without sentences are dropped. No boundary is added between two texts. The result contains the number
        of unknown tokens if the vocabulary has an unknown token. It contains word starts if the vocabulary
        does not show which ids continue a word.

        names: names of the texts, for error messages.

        Raises InputError if a text cannot be read.
        """
        ...

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately, without dividing it into sentences. A text may have no ids."""
        ...
