"""The seam between a tokeniser and everything that uses token ids."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from bertdata.records import Buffer, Documents, Vocabulary


class TextTokens(NamedTuple):
    """Token ids of several texts: those of text i are ``ids[ends[i-1]:ends[i]]`` (before the first: 0).

    Of each token ``starts`` and ``stops`` are its place in its own text, in code points (uint32), with the
    blanks that it holds; ``word_starts`` is 1 where a word starts (a byte). None where the tokeniser does not
    tell them.
    """

    ids: Buffer
    ends: Buffer
    starts: Buffer | None = None
    stops: Buffer | None = None
    word_starts: Buffer | None = None

    def lists(self) -> Iterator[list[int]]:
        """The ids of each text as a list."""
        ids = list(self.ids)
        return (ids[start:end] for start, end in pairwise(chain((0,), self.ends)))


class Tokenizer(Protocol):
    """Turns texts into documents of token ids.

    ``vocabulary`` is its identity (name and md5) and all that example makers need to know of ids: those with
    a role, which of them continue a word, which a random replacement is drawn from.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """The documents of several texts read as one sequence. names: for errors.

        A blank line ends a document, any other line is a sentence unless it yields no id; documents
        without sentences are dropped. No boundary is added between texts. Where the vocabulary has an
        unknown token, the documents say how many of their ids it is; where it does not tell word starts, the
        documents do. InputError for a text that cannot be read.
        """
        ...

    def encode_each(self, texts: Sequence[str]) -> TextTokens:
        """The ids of each text by itself, without sentences. A text may have none."""
        ...
