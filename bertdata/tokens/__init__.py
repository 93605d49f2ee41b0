"""Part to documents of token ids: reading lines, cleaning, splitting, WordPiece.

``documents.tokenize`` is the step; the other modules are its specification, read top down:
``documents`` (lines to documents), ``basic`` (text to words), ``wordpiece`` (words to ids),
``vocabulary`` (ids of a vocabulary file); Unicode 11.0's rules are ``bertdata.unicode.characters``.
"""

from bertdata.tokens.documents import tokenize
from bertdata.tokens.vocabulary import parse_vocabulary

__all__ = ["parse_vocabulary", "tokenize"]
