"""Tokenisers and vocabularies of files, loaded once in each process that needs them."""

from functools import lru_cache

from bertdata._native import Engine
from bertdata.config.dialects import find_dialect
from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.vocabulary import WordPieceVocabulary, parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer


def load_vocabulary(path: str, dialect: str) -> Vocabulary:
    """The vocabulary of a tokeniser's file as the dialect reads it; kept between a worker's tasks."""
    return _load_wordpiece_vocabulary(path, dialect)


@lru_cache(maxsize=4)
def load_tokenizer(path: str, dialect: str, lower_case: bool, engine: Engine | None = None) -> Tokenizer:
    """The tokeniser of a file, with its cache of words; kept between a worker's tasks.

    Every file is a WordPiece vocabulary, one token a line.
    """
    vocabulary = _load_wordpiece_vocabulary(path, dialect)
    return WordPieceTokenizer(vocabulary, find_dialect(dialect), lower_case=lower_case, engine=engine)


@lru_cache(maxsize=4)
def _load_wordpiece_vocabulary(path: str, dialect: str) -> WordPieceVocabulary:
    return parse_vocabulary(storage.read_bytes(path), path, find_dialect(dialect))
