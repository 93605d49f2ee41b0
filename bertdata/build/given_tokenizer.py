"""The tokeniser that the user chooses: a WordPiece vocabulary or a tokenizer.json."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings, require
from bertdata.errors import SettingsError
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.records import Documents
from bertdata.tokens.files import TokenizerFile, TokenizerJson, VocabularyFile
from bertdata.tokens.load import pin_file, tokenizer_of, vocabulary_of
from bertdata.tokens.roles import parse_roles
from bertdata.tokens.tokenizer_json import find_tokenizer_json

_WORDPIECE_SETTINGS = {
    "dialect": "--dialect",
    "lower_case": "--lower-case or --no-lower-case",
    "keep_accents": "--keep-accents",
    "chinese_words": "--chinese-words",
}
"""Settings that apply only to a WordPiece vocabulary, each with its flag."""


def find_given_tokenizer(
    settings: ExampleSettings,
    changes: Mapping[str, Any],
    *,
    vocab: str | None,
    tokenizer: str | None,
    roles: Sequence[str],
    between: str | None = None,
) -> TokenizerFile:
    """Return the tokeniser that --vocab or --tokenizer names, with the md5 of its file's present contents.

    settings: settings of a dataset.
    changes: settings that the user has chosen, by name.
    vocab: value of --vocab.
    tokenizer: value of --tokenizer.
    roles: values of --role, which name the special tokens of a tokenizer.json.
    between: text that joins two sentences, which depends on the language. None means a blank. It is not used
        for a WordPiece vocabulary, which encodes each sentence separately.

    Raises SettingsError unless exactly one of the two flags is given, or if a setting belongs to the other
    flag.
    """
    if tokenizer is None:
        require(vocab is not None, "give --vocab FILE|NAME, a WordPiece vocabulary, or --tokenizer FILE|DIR")
        require(
            not roles,
            "--role goes with --tokenizer: a WordPiece vocabulary names its tokens [CLS], [SEP], ...",
        )
        return pin_file(_find_vocabulary(str(vocab), settings))
    require(vocab is None, "--vocab and --tokenizer: expected one of them, since each is a whole tokeniser")
    for name, flag in _WORDPIECE_SETTINGS.items():
        require(
            name not in changes, f"{flag} goes with --vocab: a tokenizer.json says itself how text is read"
        )
    file = _find_tokenizer_json(tokenizer, roles)
    return pin_file(file if between is None else replace(file, between=between))


def _find_vocabulary(path: str, settings: ExampleSettings) -> VocabularyFile:
    """Return the WordPiece vocabulary that the value of ``--vocab`` names.

    Raises SettingsError if the path is a directory.
    """
    if storage.is_directory(path):
        raise SettingsError(
            f"--vocab {path}: is a directory, expected a WordPiece vocabulary, one token a line; a model's "
            f"directory with a tokenizer.json goes with --tokenizer {path}"
        )
    return VocabularyFile(
        path=find_vocabulary(path),
        dialect=settings.dialect,
        lower_case=settings.lower_case,
        keep_accents=settings.keep_accents,
        chinese_words=settings.chinese_words,
    )


def _find_tokenizer_json(path: str, roles: Sequence[str]) -> TokenizerJson:
    """Return the tokenizer.json at a path. The path may also be the directory of a model."""
    if not storage.exists(path):
        raise SettingsError(f"--tokenizer {path}: no such file or directory, expected a tokenizer.json")
    return find_tokenizer_json(path, parse_roles(roles))


def check_tokenizer(
    file: TokenizerFile, settings: Sequence[ExampleSettings], engine: Engine | None = None
) -> None:
    """Load the tokeniser, so that a broken file, a missing special token or a missing package is reported at
    once.

    Without this check the error would only come when the first text is read.

    settings: the settings of all datasets of the run.
    """
    if isinstance(file, VocabularyFile):
        if file.chinese_words:
            tokenizer_of(file, engine).encode(["一".encode()], ["text"])
        return
    vocabulary = vocabulary_of(file)
    starts = b"" if vocabulary.continues_word is None else None
    nothing = Documents(ids=b"", sentence_ends=b"", document_ends=b"", word_starts=starts)
    for one in settings:
        if one.objective in OBJECTIVES:
            find_objective(one.objective).make(nothing, vocabulary, one, "python")
    tokenizer_of(file, engine)
