"""Finds the tokenizer.json at a path, or makes one from a model's directory, and reads its vocabulary."""

import hashlib
from collections.abc import Mapping
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, convert_dictionary
from bertdata.tokens.files import (
    TOKENIZER_NAME,
    VOCABULARY_NAME,
    TokenizerFile,
    TokenizerJson,
    VocabularyFile,
)
from bertdata.tokens.json_document import parse_tokenizer_json, read_token_ids
from bertdata.tokens.model_directory.files import (
    SPECIAL_TOKENS_NAME,
    VOCABULARY_NAMES,
    ModelFiles,
    read_bounded_file,
    read_directory_version,
)
from bertdata.tokens.model_directory.reader import read_model_tokenizer
from bertdata.tokens.model_directory.tokenizer_class import find_class
from bertdata.tokens.roles import count_separators, find_roles
from bertdata.tokens.vocabulary import begins_as_json

_BEGINNING = 4096


def find_tokenizer_json(path: str, roles: Mapping[str, str], **settings: Any) -> TokenizerJson:
    """Return the tokenizer.json at a path, with the tokens of its roles.

    The path of a model's directory stands for the tokeniser that AutoTokenizer of transformers 5 makes of it.
    If the directory's own tokenizer.json describes this tokeniser, the result is that file. Otherwise the
    result is the directory itself, and ``read_tokenizer_bytes`` makes a tokenizer.json from it.

    roles: tokens that the user named, by role.
    settings: further fields of the TokenizerJson.
    """
    if storage.is_directory(path) and not _is_fairseq_directory(path):
        model = read_model_tokenizer(path)
        files = ModelFiles(path)
        hints = [model.named, files.read_object(SPECIAL_TOKENS_NAME) or {}]
        found = find_roles(model.parsed, read_token_ids(model.parsed, path), path, roles, hints)
        return TokenizerJson(path=model.own_file or path, roles=tuple(found.items()), **settings)
    if storage.is_directory(path):
        path = storage.join(path, DICTIONARY_NAME)
    parsed = parse_tokenizer_json(read_tokenizer_bytes(path), path)
    found = find_roles(parsed, read_token_ids(parsed, path), path, roles)
    return TokenizerJson(path=path, roles=tuple(found.items()), **settings)


def find_json_with_roles(path: str) -> TokenizerJson:
    """Return the tokenizer.json at a path.

    The tokens of its roles are read from the configuration files next to it.
    """
    files = ModelFiles(storage.get_parent(path) or ".")
    hints = [files.tokenizer_config, files.read_object(SPECIAL_TOKENS_NAME) or {}]
    parsed = parse_tokenizer_json(read_tokenizer_bytes(path), path)
    found = find_roles(parsed, read_token_ids(parsed, path), path, {}, hints)
    return TokenizerJson(path=path, roles=tuple(found.items()))


def find_model_tokenizer(directory: str) -> TokenizerFile:
    """Return the tokeniser's file of a model's directory.

    This is vocab.txt if it describes the whole tokeniser together with its casing, otherwise a
    tokenizer.json. If the directory names neither a class of tokeniser nor a type of model, it was not
    written by transformers, and its vocab.txt is read by BERT's rules.
    """
    if _is_fairseq_directory(directory):
        return find_tokenizer_json(directory, {})
    files = ModelFiles(directory)
    vocabulary = files.find_path(VOCABULARY_NAME)
    if vocabulary is not None and files.find_path(TOKENIZER_NAME) is None and find_class(files) is None:
        lower_case = files.tokenizer_config.get("do_lower_case") is not False
        return VocabularyFile(path=vocabulary, dialect="google", lower_case=lower_case)
    return read_model_tokenizer(directory).vocabulary or find_tokenizer_json(directory, {})


def read_model_casing(directory: str) -> bool | None:
    """Return True if a model's vocab.txt is for text in lower case, and False if it is for cased text.

    Returns None if the directory has no tokenizer_config.json that says so, or if its tokeniser is not a
    vocab.txt. For a directory without this file transformers uses lower case, but capital letters in the
    vocabulary show that this is wrong.
    """
    if not ModelFiles(directory).tokenizer_config:
        return None
    found = find_model_tokenizer(directory)
    return found.lower_case if isinstance(found, VocabularyFile) else None


def holds_tokenizer(directory: str) -> bool:
    """Return True if a directory contains a file with a vocabulary."""
    names = (*VOCABULARY_NAMES, DICTIONARY_NAME)
    return any(storage.exists(storage.join(directory, name)) for name in names)


def is_tokenizer_json(path: str) -> bool:
    """Return True if the file begins like a JSON object. No WordPiece vocabulary begins like this."""
    with storage.open_input(path) as file:
        return begins_as_json(file.read(_BEGINNING))


def read_tokenizer_bytes(path: str) -> bytes:
    """Return the content of the tokenizer.json at a path.

    If the path is a model's directory or a ``dict.txt``, a tokenizer.json is made from it.
    """
    if storage.is_directory(path):
        return read_model_tokenizer(path).dump()
    data = read_bounded_file(path)
    return convert_dictionary(data, path) if storage.get_base_name(path) == DICTIONARY_NAME else data


def read_file_version(path: str) -> tuple[int, ...]:
    """Return numbers that change when a tokeniser's local file is changed.

    If the path is a directory, they change when any file of the tokeniser in the directory is changed.
    """
    if storage.is_directory(path):
        return read_directory_version(path)
    return storage.read_version(path)


def _is_fairseq_directory(directory: str) -> bool:
    """Return True if the path is a directory of fairseq, whose vocabulary is in dict.txt."""
    has = {name: storage.exists(storage.join(directory, name)) for name in (TOKENIZER_NAME, DICTIONARY_NAME)}
    return has[DICTIONARY_NAME] and not has[TOKENIZER_NAME]


def read_tokenizer_json(file: TokenizerJson) -> tuple[dict[str, Any], Vocabulary]:
    """Read a tokenizer.json, and return the parsed file and its vocabulary.

    Raises VocabularyError if the file is not a tokenizer.json.
    """
    data = read_tokenizer_bytes(file.path)
    parsed = parse_tokenizer_json(data, file.path)
    return parsed, _make_vocabulary(parsed, data, file)


def _make_vocabulary(parsed: dict[str, Any], data: bytes, file: TokenizerJson) -> Vocabulary:
    """Make the vocabulary of a tokenizer.json.

    parsed: the parsed file.
    data: content of the file, whose md5 the vocabulary contains.
    file: path and settings of the file.
    """
    ids = read_token_ids(parsed, file.path)
    words = ["[unused]"] * (max(ids.values()) + 1)
    for token, number in ids.items():
        words[number] = token
    model = parsed["model"]
    roles: dict[str, Any] = {}
    for role, token in file.roles:
        if token not in ids:
            raise VocabularyError(f"{file.path}: has no token {token!r}, which has the role {role}")
        roles[role] = ids[token]
    return Vocabulary(
        name=file.path,
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        kind=model["type"].lower(),
        words=words,
        continues_word=_find_continuations(parsed, words),
        replacements=tuple(sorted(set(ids.values()))),
        pair_separators=count_separators(parsed["post_processor"]),
        **roles,
    )


def _find_continuations(parsed: Mapping[str, Any], words: list[str]) -> bytes | None:
    """Return one byte for each id: 1 if a token with this id always continues a word, otherwise 0.

    Returns None if this cannot be told from the id. It can be told for WordPiece, where such tokens begin
    with ``##``, if the pre-tokeniser never splits text before ``##``. BERT's pre-tokeniser does not, because
    it splits at every punctuation mark.
    """
    model, splitting = parsed["model"], parsed["pre_tokenizer"] or {}
    if (
        model["type"] != "WordPiece"
        or model.get("continuing_subword_prefix", "##") != "##"
        or splitting.get("type") != "BertPreTokenizer"
        or any(item["content"].startswith("##") for item in parsed["added_tokens"])
    ):
        return None
    return bytes(word.startswith("##") for word in words)
