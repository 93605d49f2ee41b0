"""Interface between tokenisers and all code that uses token ids."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from bertdata.records import Buffer, Documents, Vocabulary


class TextTokens(NamedTuple):
    """Token ids of several texts. Text i is ``ids[ends[i-1]:ends[i]]``, with 0 before the first end.

    starts, stops: position of each token in its text, in code points (uint32), including blanks of the token.
    word_starts: one byte per token, 1 where a word starts.
    The last three are None if the tokeniser does not provide them.
    """

    ids: Buffer
    ends: Buffer
    starts: Buffer | None = None
    stops: Buffer | None = None
    word_starts: Buffer | None = None

    def lists(self) -> Iterator[list[int]]:
        """Yield the token ids of each text as a Python list."""
        ids = list(self.ids)
        return (ids[start:end] for start, end in pairwise(chain((0,), self.ends)))


class Tokenizer(Protocol):
    """Interface of a tokeniser.

    ``vocabulary`` identifies the tokeniser (name and md5) and contains what example makers need to know about
    ids: special tokens, which ids continue a word, and from which ids random replacements are drawn.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """Encode several texts as if they were one file. names: the texts' names, for errors.

        A blank line ends a document, and every other line is a sentence. Sentences without ids and documents
        without sentences are dropped. No boundary is added between texts. The documents contain the number of
        unknown tokens if the vocabulary has one, and word starts if the vocabulary does not say which ids
        continue a word.
        InputError if a text cannot be read.
        """
        ...

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """Encode each text separately, without dividing it into sentences. A text may have no ids."""
        ...
