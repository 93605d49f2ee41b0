"""The seam between a tokeniser and everything that uses token ids."""

from typing import Protocol

from bertdata.records import Documents, Vocabulary


class Tokenizer(Protocol):
    """Turns texts into documents of token ids.

    ``vocabulary`` is its identity (name and md5) and all that example makers need to know of ids: the
    special ones, which of them continue a word, which a random replacement is drawn from.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    def encode(self, texts: list[bytes], names: list[str]) -> Documents:
        """The documents of several texts read as one sequence. names: for errors.

        A blank line ends a document, any other line is a sentence unless it yields no id; documents
        without sentences are dropped. No boundary is added between texts. Where the vocabulary has an
        unknown token, the documents say how many of their ids it is. InputError for a text that cannot
        be read.
        """
        ...
