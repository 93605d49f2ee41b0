"""The files of a tokeniser in a directory of a model: a run's, or an export in another program's form."""

import json
from typing import Any

from bertdata.io import storage
from bertdata.records import ROLES, Vocabulary
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, VocabularyFile
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.tokenizer_json import tokenizer_bytes
from bertdata.tokens.vocabulary_json import wordpiece_json

CONFIGURATION_NAME = "tokenizer_config.json"
"""The file beside a tokeniser's: its casing, or the tokens with a role, under transformers' names."""


def kept_files(file: TokenizerFile) -> dict[str, bytes]:
    """Contents of a tokeniser's files by name: a vocabulary and its casing, or a tokenizer.json and roles.

    The tokenizer.json is the given one, byte for byte. A vocabulary whose accents are kept becomes one, which
    says so to every reader.
    """
    if isinstance(file, VocabularyFile) and file.keep_accents:
        vocabulary = vocabulary_of(file)
        roles = tuple((role, vocabulary.words[vocabulary.role(role)]) for role in ROLES)
        values = {"tokenizer_class": "PreTrainedTokenizerFast", **role_tokens(roles)}
        return {TOKENIZER_NAME: wordpiece_json(file), CONFIGURATION_NAME: _line(values)}
    if isinstance(file, VocabularyFile):
        content = vocabulary_text(vocabulary_of(file))
        return {VOCABULARY_NAME: content, CONFIGURATION_NAME: _line({"do_lower_case": file.lower_case})}
    values = {"tokenizer_class": "PreTrainedTokenizerFast", **role_tokens(file.roles)}
    return {TOKENIZER_NAME: tokenizer_bytes(file.path), CONFIGURATION_NAME: _line(values)}


def keep_files(file: TokenizerFile, directory: str) -> None:
    """Write a tokeniser's files into a directory, but for those that say the same already."""
    for name, data in kept_files(file).items():
        path = storage.join(directory, name)
        if not storage.exists(path) or storage.read_bytes(path) != data:
            with storage.open_output(path) as output:
                output.write(data)


def vocabulary_text(words: Vocabulary) -> bytes:
    """A vocabulary file: a token a line, by id."""
    return "".join(f"{word}\n" for word in words.words).encode()


def role_tokens(roles: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The tokens with a role under transformers' names: ``mask_token``.

    >>> role_tokens((("mask", "<mask>"),))
    {'mask_token': '<mask>'}
    """
    return {f"{role}_token": token for role, token in roles}


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"
