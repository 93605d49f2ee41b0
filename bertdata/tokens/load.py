"""Loads tokenisers and vocabularies from files, and caches them in the process."""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from bertdata._native import Engine, available, default_engine, use_native
from bertdata.config.dialects import find_dialect
from bertdata.io import storage
from bertdata.io.file_check import compute_md5
from bertdata.io.file_identity import make_changed_error
from bertdata.records import Vocabulary
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME
from bertdata.tokens.files import TokenizerFile, TokenizerJson, VocabularyFile
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.tokenizer_json import (
    find_tokenizer_json,
    is_tokenizer_json,
    read_file_version,
    read_tokenizer_bytes,
    read_tokenizer_json,
)
from bertdata.tokens.vocabulary import WordPieceVocabulary, parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer


class _ChosenTokenizer(NamedTuple):
    """Tokeniser that was chosen for a tokenizer.json.

    note: line for the log that says which implementation runs the file, and why.
    """

    tokenizer: Tokenizer
    note: str


def vocabulary_of(file: TokenizerFile) -> Vocabulary:
    """Return the vocabulary of a tokeniser's file.

    The process caches the vocabulary, and reads it again if the local file has changed.
    Raises ChangedInputError if ``file`` requires another md5 than the file has.
    """
    version = read_file_version(file.path)
    if isinstance(file, VocabularyFile):
        vocabulary = _load_wordpiece_vocabulary(file.path, file.dialect, version)
        _refuse_changed_file(file, vocabulary)
        return replace(vocabulary, continues_word=None) if file.chinese_words else vocabulary
    loaded = _load_json_vocabulary(file, version)
    _refuse_changed_file(file, loaded)
    return loaded


def tokenizer_of(file: TokenizerFile, engine: Engine | None = None) -> Tokenizer:
    """Return the tokeniser that is made from a file.

    The process caches the tokeniser, which itself caches words. It makes the tokeniser again if the local
    file has changed.

    engine: "native" for C++, "python" for pure Python, None for C++ if it is built.

    Raises ChangedInputError if ``file`` requires another md5 than the file has.
    """
    version = read_file_version(file.path)
    tokenizer: Tokenizer
    if isinstance(file, VocabularyFile):
        tokenizer = _load_wordpiece_tokenizer(file, engine, version)
    else:
        tokenizer = _choose_tokenizer(file, engine, version).tokenizer
    _refuse_changed_file(file, tokenizer.vocabulary)
    return tokenizer


def _refuse_changed_file(file: TokenizerFile, loaded: Vocabulary) -> None:
    """Raise ChangedInputError if the loaded vocabulary's md5 is not the md5 that ``file`` requires."""
    if file.md5 and loaded.md5 != file.md5:
        raise make_changed_error(file.path, f"its md5 was {file.md5} and now is {loaded.md5}")


def pin_file(file: TokenizerFile) -> TokenizerFile:
    """Return a copy of ``file`` that requires the md5 that the file has now.

    A worker that reads the file later then gets the same bytes, or a ChangedInputError.
    """
    read = read_tokenizer_bytes if isinstance(file, TokenizerJson) else storage.read_bytes
    return replace(file, md5=compute_md5(read(file.path)))


def describe_engine(file: TokenizerFile, engine: Engine | None = None) -> str | None:
    """Return a line for the log that says which implementation runs a tokenizer.json, and why.

    The result is None for a WordPiece vocabulary file.
    """
    if isinstance(file, VocabularyFile):
        return None
    return _choose_tokenizer(file, engine, read_file_version(file.path)).note


def find_tokenizer_file(path: str) -> TokenizerFile:
    """Return the tokeniser's file at a path.

    A directory, a tokenizer.json or a ``dict.txt`` is treated as a tokenizer.json. Any other file is treated
    as a WordPiece vocabulary in the dialect of MLPerf.
    """
    if (
        storage.is_directory(path)
        or is_tokenizer_json(path)
        or storage.get_base_name(path) == DICTIONARY_NAME
    ):
        return find_tokenizer_json(path, {})
    return VocabularyFile(path=path, dialect="mlperf")


def load_vocabulary(path: str, dialect: str) -> Vocabulary:
    """Load a WordPiece vocabulary file, which has one token per line.

    dialect: name of the program whose rules for the file are used, such as "mlperf".
    """
    return vocabulary_of(VocabularyFile(path=path, dialect=dialect))


def load_tokenizer(path: str, dialect: str, lower_case: bool, engine: Engine | None = None) -> Tokenizer:
    """Make the tokeniser of a WordPiece vocabulary file, which has one token per line."""
    return tokenizer_of(VocabularyFile(path=path, dialect=dialect, lower_case=lower_case), engine)


@lru_cache(maxsize=4)
def _choose_tokenizer(
    file: TokenizerJson, engine: Engine | None, version: tuple[int, ...]
) -> _ChosenTokenizer:
    """Choose the implementation that runs a tokenizer.json.

    This is a C++ kernel if a kernel supports the file, and otherwise the library ``tokenizers``.

    version: numbers that differ after the file was changed, so that the cache does not return an old
        tokeniser.
    """
    # These modules are imported only here, because they load Unicode tables. That takes time, and a WordPiece
    # vocabulary file does not need it.
    from bertdata.tokens.bpe.recognition import recognise_byte_bpe
    from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer
    from bertdata.tokens.library_tokenizer import LibraryTokenizer
    from bertdata.tokens.wordpiece_json import WordPieceJsonTokenizer, find_obstacle

    parsed, vocabulary = read_tokenizer_json(file)
    name = f"{file.path}: {vocabulary.kind} of {vocabulary.tokens} tokens"
    native = use_native(engine or default_engine())
    reason = f"its model is {parsed['model']['type']}"
    # The kernels are tried first, because they are several times faster than ``tokenizers``. With
    # engine="python", a byte-level BPE is run by the pure-Python version of its kernel. There is no such
    # version for a WordPiece tokenizer.json.
    if engine is None and not available():
        # The pure-Python versions are slower than ``tokenizers``, so they are not used here.
        reason = "the kernels are not built"
    elif vocabulary.kind == "bpe":
        bpe = recognise_byte_bpe(parsed)
        if not isinstance(bpe, str):
            runner = "byte-level BPE kernel" if native else "readable twin of the byte-level BPE kernel"
            tokenizer = ByteBpeTokenizer(bpe, vocabulary, between=file.between, engine=engine)
            return _ChosenTokenizer(tokenizer, f"{name}, run by the {runner}")
        reason = bpe
    elif vocabulary.kind == "wordpiece":
        misfit = find_obstacle(parsed, vocabulary, file.between)
        if misfit is None and native:
            kernel = WordPieceJsonTokenizer(parsed, vocabulary, file.between)
            return _ChosenTokenizer(kernel, f"{name}, run by the WordPiece kernel")
        reason = misfit or "--engine python"
    note = f"{name}, run by the tokenizers library: {reason}"
    return _ChosenTokenizer(LibraryTokenizer(parsed, vocabulary, file.between), note)


@lru_cache(maxsize=4)
def _load_json_vocabulary(file: TokenizerJson, version: tuple[int, ...]) -> Vocabulary:
    """Read the vocabulary of a tokenizer.json, and cache it until the file changes."""
    return read_tokenizer_json(file)[1]


@lru_cache(maxsize=4)
def _load_wordpiece_tokenizer(
    file: VocabularyFile, engine: Engine | None, version: tuple[int, ...]
) -> WordPieceTokenizer:
    """Make the tokeniser of a WordPiece vocabulary file, and cache it until the file changes."""
    vocabulary = _load_wordpiece_vocabulary(file.path, file.dialect, version)
    kind = WordPieceTokenizer
    if file.chinese_words:
        from bertdata.tokens.chinese_wordpiece import ChineseWordPieceTokenizer

        kind = ChineseWordPieceTokenizer
    return kind(
        vocabulary,
        find_dialect(file.dialect),
        lower_case=file.lower_case,
        keep_accents=file.keep_accents,
        engine=engine,
    )


@lru_cache(maxsize=4)
def _load_wordpiece_vocabulary(path: str, dialect: str, version: tuple[int, ...]) -> WordPieceVocabulary:
    """Read a WordPiece vocabulary file, and cache the vocabulary until the file changes."""
    return parse_vocabulary(storage.read_bytes(path), path, find_dialect(dialect))
