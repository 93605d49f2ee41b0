"""The tokeniser that the user names: a WordPiece vocabulary, or a tokenizer.json with token roles."""

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

_OF_VOCABULARIES = {
    "dialect": "--dialect",
    "lower_case": "--lower-case or --no-lower-case",
    "keep_accents": "--keep-accents",
    "chinese_words": "--chinese-words",
}
"""Settings that only apply to a WordPiece vocabulary, with their flags."""


def find_given_tokenizer(
    settings: ExampleSettings,
    changes: Mapping[str, Any],
    *,
    vocab: str | None,
    tokenizer: str | None,
    roles: Sequence[str],
    between: str | None = None,
) -> TokenizerFile:
    """Return the tokeniser named by --vocab or --tokenizer, pinned to the current contents of its file.

    Raises SettingsError unless exactly one of the two is given, without settings of the other.

    settings: settings of a dataset.
    changes: the settings that the user has given.
    roles: values of --role, which name the special tokens of a tokenizer.json.
    between: text to put between two sentences, depending on the language of the parts. None means a blank.
        Ignored for a vocabulary, which encodes each sentence separately.
    """
    if tokenizer is None:
        require(vocab is not None, "give --vocab FILE|NAME, a WordPiece vocabulary, or --tokenizer FILE|DIR")
        require(
            not roles,
            "--role goes with --tokenizer: a WordPiece vocabulary names its tokens [CLS], [SEP], ...",
        )
        return pin_file(_find_vocabulary(str(vocab), settings))
    require(vocab is None, "--vocab and --tokenizer: expected one of them, since each is a whole tokeniser")
    for name, flag in _OF_VOCABULARIES.items():
        require(
            name not in changes, f"{flag} goes with --vocab: a tokenizer.json says itself how text is read"
        )
    file = _find_tokenizer_json(tokenizer, roles)
    return pin_file(file if between is None else replace(file, between=between))


def _find_vocabulary(path: str, settings: ExampleSettings) -> VocabularyFile:
    """Return the WordPiece vocabulary that ``--vocab`` names. Raises SettingsError if it is a directory."""
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
    """Return the tokenizer.json at the path, which may be a model's directory."""
    if not storage.exists(path):
        raise SettingsError(f"--tokenizer {path}: no such file or directory, expected a tokenizer.json")
    return find_tokenizer_json(path, parse_roles(roles))


def check_tokenizer(
    file: TokenizerFile, settings: Sequence[ExampleSettings], engine: Engine | None = None
) -> None:
    """Raise an error now for a broken model, a missing role or a missing package.

    Otherwise the error would come only with the first text.

    settings: the settings of all datasets.
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
