"""The tokeniser that a person names by a path: a vocabulary, a tokenizer.json or a model's directory."""

from dataclasses import replace

from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, VocabularyFile
from bertdata.tokens.tokenizer_json import find_tokenizer_json, is_json


def given_tokenizer(path_or_name: str, dialect: str = "google") -> TokenizerFile:
    """The tokeniser of a vocabulary, which lower-cases, of a tokenizer.json or of a model's directory.

    The roles of a tokenizer.json are told by the files beside it too.
    """
    path = _path_of(path_or_name)
    if storage.base_name(path) == TOKENIZER_NAME:
        return find_tokenizer_json(storage.parent(path) or ".", {})
    return find_tokenizer_json(path, {}) if is_json(path) else VocabularyFile(path=path, dialect=dialect)


def with_casing(file: TokenizerFile, lower_case: bool | None) -> TokenizerFile:
    """The vocabulary with the casing, lower case by default. UsageError for a casing of a tokenizer.json."""
    if isinstance(file, VocabularyFile):
        return replace(file, lower_case=lower_case is not False)
    if lower_case is not None:
        raise UsageError(
            f"{file.path}: a tokenizer.json says itself how text is read; leave out --lower-case and "
            "--no-lower-case"
        )
    return file


def _path_of(path_or_name: str) -> str:
    """The file of a given tokeniser, which may be a model's directory."""
    if not storage.is_directory(path_or_name):
        return find_vocabulary(path_or_name)
    inside = storage.join(path_or_name, VOCABULARY_NAME)
    return inside if storage.exists(inside) else find_tokenizer_json(path_or_name, {}).path
