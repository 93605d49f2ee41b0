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
    """The vocabulary of a tokeniser's file as the dialect reads it. Kept between a worker's tasks.

    A local file that was changed is read anew.
    """
    return _load_wordpiece_vocabulary(path, dialect, storage.version(path))


def load_tokenizer(path: str, dialect: str, lower_case: bool, engine: Engine | None = None) -> Tokenizer:
    """The tokeniser of a file, with its cache of words. Kept between a worker's tasks, as vocabularies are.

    Every file is a WordPiece vocabulary, one token a line.
    """
    return _load_wordpiece_tokenizer(path, dialect, lower_case, engine, storage.version(path))


@lru_cache(maxsize=4)
def _load_wordpiece_tokenizer(
    path: str, dialect: str, lower_case: bool, engine: Engine | None, version: tuple[int, ...]
) -> WordPieceTokenizer:
    vocabulary = _load_wordpiece_vocabulary(path, dialect, version)
    return WordPieceTokenizer(vocabulary, find_dialect(dialect), lower_case=lower_case, engine=engine)


@lru_cache(maxsize=4)
def _load_wordpiece_vocabulary(path: str, dialect: str, version: tuple[int, ...]) -> WordPieceVocabulary:
    return parse_vocabulary(storage.read_bytes(path), path, find_dialect(dialect))
