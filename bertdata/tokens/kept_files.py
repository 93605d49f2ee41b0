"""Writes the files of a tokeniser into a model's directory, such as the directory of a training run."""

import json
from typing import Any

from bertdata.io import storage
from bertdata.records import ROLES, Vocabulary
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, VocabularyFile
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.tokenizer_json import read_tokenizer_bytes
from bertdata.tokens.vocabulary_json import convert_wordpiece

CONFIGURATION_NAME = "tokenizer_config.json"
"""Name of transformers' file with the casing or the special tokens of a tokeniser."""


def make_tokenizer_files(file: TokenizerFile) -> dict[str, bytes]:
    """Return the files that a model's directory needs for its tokeniser: the content of each file by name.

    For a vocabulary, these are vocab.txt and its casing. For a tokenizer.json, these are an unchanged copy
    and the tokens of its roles. A vocabulary with ``keep_accents`` is converted to a tokenizer.json, because
    a vocab.txt cannot say that accents are kept.
    """
    if isinstance(file, VocabularyFile) and file.keep_accents:
        vocabulary = vocabulary_of(file)
        roles = tuple((role, vocabulary.words[vocabulary.role(role)]) for role in ROLES)
        values = {"tokenizer_class": "PreTrainedTokenizerFast", **name_role_tokens(roles)}
        return {TOKENIZER_NAME: convert_wordpiece(file), CONFIGURATION_NAME: _format_line(values)}
    if isinstance(file, VocabularyFile):
        content = format_vocabulary(vocabulary_of(file))
        return {
            VOCABULARY_NAME: content,
            CONFIGURATION_NAME: _format_line({"do_lower_case": file.lower_case}),
        }
    values = {"tokenizer_class": "PreTrainedTokenizerFast", **name_role_tokens(file.roles)}
    return {TOKENIZER_NAME: read_tokenizer_bytes(file.path), CONFIGURATION_NAME: _format_line(values)}


def write_tokenizer_files(file: TokenizerFile, directory: str) -> None:
    """Write the files of a tokeniser into a directory.

    A file that already has the right content is not written.
    """
    for name, data in make_tokenizer_files(file).items():
        path = storage.join(directory, name)
        if not storage.exists(path) or storage.read_bytes(path) != data:
            with storage.open_output(path) as output:
                output.write(data)


def format_vocabulary(words: Vocabulary) -> bytes:
    """Return the content of a vocabulary file: one token per line, in the order of their ids."""
    return "".join(f"{word}\n" for word in words.words).encode()


def name_role_tokens(roles: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the token of each role under transformers' name for the role, such as ``mask_token``.

    >>> name_role_tokens((("mask", "<mask>"),))
    {'mask_token': '<mask>'}
    """
    return {f"{role}_token": token for role, token in roles}


def _format_line(values: dict[str, Any]) -> bytes:
    """Return the values as a JSON object on one line."""
    return json.dumps(values).encode() + b"\n"
