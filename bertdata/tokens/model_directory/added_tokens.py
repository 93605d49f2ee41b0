"""Finds the tokens that transformers 5 adds to a tokeniser when it loads a model's directory, in the same
order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.tokens.added_ids import number_added_tokens
from bertdata.tokens.model_directory.files import (
    ADDED_TOKENS_NAME,
    SPECIAL_TOKENS_NAME,
    TOKENIZER_CONFIG_NAME,
    ModelFiles,
)

SPECIAL_TOKEN_KEYS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
"""Keys of the standard special tokens, in the order in which transformers adds these tokens."""

_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectoryToken:
    """An added token of a model's directory. The flags are those of the tokenizers library."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = True
    special: bool = False

    @classmethod
    def make_special(cls, content: str) -> "DirectoryToken":
        """Make a special token from its text, with the flags that transformers gives such a token by
        default.
        """
        return cls(content=content, normalized=False, special=True)

    def make_entry(self, token_id: int) -> dict[str, Any]:
        """Return the token as an entry of ``added_tokens`` in a tokenizer.json.

        token_id: id of the token.
        """
        return {"id": token_id, "content": self.content} | {flag: getattr(self, flag) for flag in _FLAGS}


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectoryTokens:
    """All tokens that the files of a model's directory add.

    tokens: the tokens in the order in which transformers adds them.
    named: the special token of each key, such as "mask_token". The class of the tokeniser supplies a default
        for a key that the files do not mention.
    """

    tokens: tuple[DirectoryToken, ...]
    named: Mapping[str, DirectoryToken]


def read_added_tokens(
    files: ModelFiles, defaults: Mapping[str, str], known: Iterable[str]
) -> DirectoryTokens:
    """Read the tokens that a model's directory adds.

    They are listed in ``added_tokens_decoder`` of tokenizer_config.json. If that key is missing, they are
    listed in added_tokens.json and tokenizer.json, and special_tokens_map.json says which are special.
    Special tokens that are not listed anywhere are appended. The ids in the files only determine the order of
    the tokens, because ``tokenizers`` numbers added tokens by itself.

    files: files of the directory.
    defaults: special tokens of the tokeniser's class by key, such as "mask_token".
    known: texts of added tokens that the tokeniser already has.
    """
    settings = dict(files.tokenizer_config)
    has_decoder = "added_tokens_decoder" in settings
    if not has_decoder:
        settings |= files.read_object(SPECIAL_TOKENS_NAME) or {}
    named = _find_named_tokens(files, settings, defaults)
    if has_decoder:
        names = {token.content for token in named.values()}
        numbered = _read_decoder(files, settings["added_tokens_decoder"], names)
    else:
        numbered = _read_added_tokens_json(files, settings) | _read_tokenizer_json(files)
    # The order is: tokens that are listed with an id, in the order of their ids; then special tokens with a
    # key that were not listed; then other special tokens that were not listed.
    tokens = [numbered[number] for number in sorted(numbered)]
    there = {*known, *(token.content for token in tokens)}
    for token in (*named.values(), *_make_extra_tokens(files, settings)):
        if token.content not in there:
            there.add(token.content)
            tokens.append(token)
    return DirectoryTokens(tokens=tuple(tokens), named=named)


def add_tokens(
    known: Iterable[DirectoryToken], more: Iterable[DirectoryToken], vocabulary: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return the entries of ``added_tokens`` for a tokenizer.json, sorted by id.

    known: tokens of a tokenizer.json, which are added together.
    more: tokens that are added together afterwards. If a token is added twice, it keeps its id and gets the
        later flags.
    vocabulary: ids of the model's tokens.
    """
    ids = dict[str, int]()
    tokens = dict[str, DirectoryToken]()
    for added in (known, more):
        there = {token.content: token for token in added if token.content}
        new = [content for content in there if content not in ids]
        ids |= zip(new, number_added_tokens(new, vocabulary, ids.values()), strict=True)
        tokens |= there
    entries = [token.make_entry(ids[content]) for content, token in tokens.items()]
    return sorted(entries, key=lambda entry: int(entry["id"]))


def read_json_tokens(parsed: Mapping[str, Any]) -> list[DirectoryToken]:
    """Return the added tokens of a parsed tokenizer.json, in the file's order."""
    return [
        DirectoryToken(content=item["content"], **{flag: bool(item.get(flag)) for flag in _FLAGS})
        for item in parsed["added_tokens"]
    ]


def _read_decoder(files: ModelFiles, value: Any, special: Collection[str]) -> dict[int, DirectoryToken]:
    """Read the added tokens in ``added_tokens_decoder`` of tokenizer_config.json, and return them by id.

    value: value of that key.
    special: texts of tokens that are special even if the file does not say so.
    """
    where = files.make_path(TOKENIZER_CONFIG_NAME)
    if not isinstance(value, dict):
        raise VocabularyError(f"{where}: added_tokens_decoder is no object; expected tokens by their ids")
    found = {}
    for key, item in value.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise VocabularyError(f"{where}: added_tokens_decoder has the id {key!r}, expected a number")
        is_special = _get_token_text(item) in special
        found[int(key)] = _make_token(item, where, "added_tokens_decoder", special=is_special)
    return found


def _read_added_tokens_json(files: ModelFiles, settings: Mapping[str, Any]) -> dict[int, DirectoryToken]:
    """Read the added tokens in added_tokens.json, and return them by id.

    settings: other settings of the directory, which say which tokens are special.
    """
    value = files.read_object(ADDED_TOKENS_NAME) or {}
    where = files.make_path(ADDED_TOKENS_NAME)
    special = {_get_token_text(settings[name]) for name in SPECIAL_TOKEN_KEYS if settings.get(name)}
    special |= {_get_token_text(item) for item in _list_extra_values(files, settings)}
    found = {}
    for content, number in value.items():
        if type(number) is not int:
            raise VocabularyError(f"{where}: {content!r} has the id {number!r}, expected a number")
        is_special = content in special
        found[number] = DirectoryToken(content=content, normalized=not is_special, special=is_special)
    return found


def _read_tokenizer_json(files: ModelFiles) -> dict[int, DirectoryToken]:
    """Return the added tokens of the directory's tokenizer.json by id.

    The result is empty if there is no such file.
    """
    parsed = files.tokenizer_json
    if parsed is None:
        return {}
    items = parsed["added_tokens"]
    return {item["id"]: token for item, token in zip(items, read_json_tokens(parsed), strict=True)}


def _find_named_tokens(
    files: ModelFiles, settings: Mapping[str, Any], defaults: Mapping[str, str]
) -> dict[str, DirectoryToken]:
    """Return the special token of each key, such as "mask_token".

    It is read from the settings of the directory. If they do not mention a key, the default is used.
    """
    where = files.make_path(TOKENIZER_CONFIG_NAME)
    values: dict[str, Any] = {
        **defaults,
        **{name: settings[name] for name in SPECIAL_TOKEN_KEYS if name in settings},
    }
    # transformers adds the tokens of the standard keys first, and then those of keys that only this model
    # has.
    found = {name: values[name] for name in SPECIAL_TOKEN_KEYS if name in values}
    for name, value in settings.items():
        if name.endswith("_token") and name not in SPECIAL_TOKEN_KEYS and isinstance(value, str):
            found[name] = value
    if isinstance(extra := settings.get("extra_special_tokens"), dict):
        found |= extra
    return {
        name: _make_token(value, where, name, special=True)
        for name, value in found.items()
        if value is not None
    }


def _list_extra_values(files: ModelFiles, settings: Mapping[str, Any]) -> list[Any]:
    """Return the special tokens in tokenizer_config.json that have no key such as "mask_token".

    They are listed under ``extra_special_tokens``, or under the older key ``additional_special_tokens``.
    """
    value = settings.get("extra_special_tokens")
    # If the new key has a dict, its tokens have names. The list of tokens without names is then under the
    # older key.
    if not value or isinstance(value, dict):
        value = settings.get("additional_special_tokens") or []
    if not isinstance(value, list):
        raise VocabularyError(
            f"{files.make_path(TOKENIZER_CONFIG_NAME)}: its extra special tokens are {value!r}, expected a "
            "list"
        )
    return value


def _make_extra_tokens(files: ModelFiles, settings: Mapping[str, Any]) -> list[DirectoryToken]:
    """Make the special tokens of the directory that have no key such as "mask_token", for example
    [ENTITY].
    """
    where = files.make_path(TOKENIZER_CONFIG_NAME)
    return [_make_token(item, where, "extra_special_tokens") for item in _list_extra_values(files, settings)]


def _get_token_text(token: Any) -> Any:
    """Return the text of a token in a JSON file, where a token is a string, or an object with ``content``."""
    return token.get("content") if isinstance(token, Mapping) else token


def _make_token(value: Any, where: str, name: str, *, special: bool = False) -> DirectoryToken:
    """Convert a token in a JSON file to a DirectoryToken.

    The file has the text of the token, or an object with its text and flags. Raises VocabularyError for other
    values. Without the flag ``normalized``, a special token is searched for in the original text, and any
    other token in the normalised text.

    where: path of the file, for error messages.
    name: key of the token in the file, for error messages.
    special: if True, the token is special even if its flags say otherwise.
    """
    if isinstance(value, str):
        return DirectoryToken.make_special(value)
    if isinstance(value, Mapping) and isinstance(value.get("content"), str):
        flags = {key: item for key, item in value.items() if key not in ("content", "__type", "id")}
        if flags.keys() <= set(_FLAGS) and all(isinstance(item, bool) for item in flags.values()):
            special = special or flags.get("special", False)
            return DirectoryToken(
                content=value["content"], **{"normalized": not special, **flags, "special": special}
            )
    raise VocabularyError(f"{where}: {name} holds {value!r}, expected a token's text, or it and its flags")
