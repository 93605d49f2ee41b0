"""The tokeniser that a user names by a path: a vocabulary, a tokenizer.json or a model's directory."""

from dataclasses import replace

from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.tokens.files import TOKENIZER_NAME, TokenizerFile, VocabularyFile
from bertdata.tokens.model_directory.keys import warn_of_unread_keys
from bertdata.tokens.tokenizer_json import (
    find_json_with_roles,
    find_model_tokenizer,
    find_tokenizer_json,
    is_tokenizer_json,
)


def find_named_tokenizer(path_or_name: str, dialect: str = "google") -> TokenizerFile:
    """Return the tokeniser that a user names.

    path_or_name: a vocabulary, a tokenizer.json, or a model's directory. It may also be the name of a known
    vocabulary. A tokeniser made from a vocabulary lower-cases text. The tokeniser of a model's directory is
    the same that transformers' AutoTokenizer makes. The special tokens of a tokenizer.json are also taken
    from files next to it.
    dialect: the variant of word-piece tokenisation, by the program that has it.
    """
    if storage.is_directory(path_or_name):
        found = find_model_tokenizer(path_or_name)
        return replace(found, dialect=dialect) if isinstance(found, VocabularyFile) else found
    path = find_vocabulary(path_or_name)
    if storage.get_base_name(path) == TOKENIZER_NAME:
        return find_json_with_roles(path)
    return (
        find_tokenizer_json(path, {})
        if is_tokenizer_json(path)
        else VocabularyFile(path=path, dialect=dialect)
    )


def find_vocabulary_warnings(vocabulary: str | None) -> list[str]:
    """Return warnings about ignored tokeniser settings, if ``vocabulary`` is a model's directory."""
    is_directory = vocabulary is not None and storage.is_directory(vocabulary)
    return warn_of_unread_keys(str(vocabulary)) if is_directory else []


def change_casing(file: TokenizerFile, lower_case: bool | None) -> TokenizerFile:
    """Return the tokeniser, changed to lower-case text or not.

    lower_case: whether to lower-case text. None returns the tokeniser unchanged. UsageError for a value if
    the tokeniser is a tokenizer.json, which determines the casing itself.
    """
    if isinstance(file, VocabularyFile):
        return file if lower_case is None else replace(file, lower_case=lower_case)
    if lower_case is not None:
        raise UsageError(
            f"{file.path}: a tokenizer.json says itself how text is read; leave out --lower-case and "
            "--no-lower-case"
        )
    return file
