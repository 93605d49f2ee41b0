"""The tokeniser that a run is given: a WordPiece vocabulary, or a tokenizer.json and roles of its tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings, check
from bertdata.errors import SettingsError
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.records import Documents
from bertdata.tokens.files import TokenizerFile, TokenizerJson, VocabularyFile
from bertdata.tokens.load import pinned, tokenizer_of, vocabulary_of
from bertdata.tokens.roles import parse_roles
from bertdata.tokens.tokenizer_json import find_tokenizer_json

_OF_VOCABULARIES = {
    "dialect": "--dialect",
    "lower_case": "--lower-case or --no-lower-case",
    "keep_accents": "--keep-accents",
    "chinese_words": "--chinese-words",
}
"""Settings of how a WordPiece vocabulary is read, by their flags."""


def given_tokenizer(
    settings: ExampleSettings,
    changes: Mapping[str, Any],
    *,
    vocab: str | None,
    tokenizer: str | None,
    roles: Sequence[str],
    between: str | None = None,
) -> TokenizerFile:
    """The tokeniser of --vocab or --tokenizer.

    settings: of a dataset. changes: those that were given. between: what stands between two sentences in the
    language of the parts; None: nobody says, so it is a blank. A vocabulary reads each sentence by itself.
    The file is pinned to its bytes of now.

    SettingsError unless exactly one of both is given, and what goes with it.
    """
    if tokenizer is None:
        check(vocab is not None, "give --vocab FILE|NAME, a WordPiece vocabulary, or --tokenizer FILE|DIR")
        check(
            not roles,
            "--role goes with --tokenizer: a WordPiece vocabulary names its tokens [CLS], [SEP], ...",
        )
        return pinned(_vocabulary(str(vocab), settings))
    check(vocab is None, "--vocab and --tokenizer: expected one of them, since each is a whole tokeniser")
    for name, flag in _OF_VOCABULARIES.items():
        check(name not in changes, f"{flag} goes with --vocab: a tokenizer.json says itself how text is read")
    file = _tokenizer_json(tokenizer, roles)
    return pinned(file if between is None else replace(file, between=between))


def _vocabulary(path: str, settings: ExampleSettings) -> VocabularyFile:
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


def _tokenizer_json(path: str, roles: Sequence[str]) -> TokenizerJson:
    if not storage.exists(path):
        raise SettingsError(f"--tokenizer {path}: no such file or directory, expected a tokenizer.json")
    return find_tokenizer_json(path, parse_roles(roles))


def check_tokenizer(
    file: TokenizerFile, settings: Sequence[ExampleSettings], engine: Engine | None = None
) -> None:
    """Raise now what would end a run when its first text is read: a broken model, a role or package missing.

    settings: of all datasets.
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
