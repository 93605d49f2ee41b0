"""A tokenizer.json of Hugging Face's ``tokenizers``, checked, and its tokens as a Vocabulary."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from bertdata.errors import MissingInputError, VocabularyError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.records import Vocabulary
from bertdata.tokens.fairseq_dictionary import DICTIONARY_NAME, dictionary_json
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerJson
from bertdata.tokens.roles import count_separators, find_roles
from bertdata.tokens.vocabulary import LARGEST_VOCABULARY, begins_as_json

LARGEST_BYTES = 1 << 27
"""A larger file is refused unread. That of a vocabulary of 256,000 tokens has some 35 MB."""

KINDS = ("BPE", "Unigram", "WordPiece", "WordLevel")
"""The models of a tokenizer.json, by their names in it."""

_BEGINNING = 4096
_CONFIGURATIONS = ("tokenizer_config.json", "special_tokens_map.json")
_EXPECTED = f"expected a {TOKENIZER_NAME} as Hugging Face's tokenizers library saves it"


def find_tokenizer_json(path: str, roles: Mapping[str, str], **settings: Any) -> TokenizerJson:
    """The tokenizer.json at a path, or in a model's directory, with all roles that its files tell.

    roles: those that a person gives, by name. settings: the other fields of a TokenizerJson.
    """
    configurations = []
    if storage.is_directory(path):
        for name in _CONFIGURATIONS:
            beside = storage.join(path, name)
            if storage.exists(beside):
                configurations.append(_parse_object(_read(beside), beside))
        path = _json_of(path)
    parsed = parse_tokenizer_json(_read(path), path)
    found = find_roles(parsed, token_ids(parsed, path), path, roles, configurations)
    return TokenizerJson(path=path, roles=tuple(found.items()), **settings)


def is_json(path: str) -> bool:
    """True for a file that begins as a JSON object, as no vocabulary does."""
    with storage.open_input(path) as file:
        return begins_as_json(file.read(_BEGINNING))


def tokenizer_bytes(path: str) -> bytes:
    """The bytes of a tokeniser's file. A ``dict.txt`` of fairseq's becomes its tokenizer.json."""
    data = storage.read_bytes(path)
    return dictionary_json(data, path) if storage.base_name(path) == DICTIONARY_NAME else data


def _json_of(directory: str) -> str:
    """The directory's tokenizer.json. MissingInputError says what else to give."""
    path = storage.join(directory, TOKENIZER_NAME)
    if storage.exists(path):
        return path
    if storage.exists(dictionary := storage.join(directory, DICTIONARY_NAME)):
        return dictionary
    vocabulary = storage.join(directory, VOCABULARY_NAME)
    if storage.exists(vocabulary):
        remedy = f"give --vocab {vocabulary} instead"
    else:
        remedy = (
            "save its tokeniser with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    raise MissingInputError(f"{directory}: holds no {TOKENIZER_NAME}; {remedy}")


def _read(path: str) -> bytes:
    size = storage.size(path)
    if size > LARGEST_BYTES:
        raise VocabularyError(
            f"{path}: has {size} bytes, at most {LARGEST_BYTES} are read; {_EXPECTED}, without anything else"
        )
    return tokenizer_bytes(path)


def read_tokenizer_json(file: TokenizerJson) -> tuple[dict[str, Any], Vocabulary]:
    """The file's JSON and its vocabulary. VocabularyError for a file that is not a tokenizer.json."""
    data = _read(file.path)
    parsed = parse_tokenizer_json(data, file.path)
    return parsed, _vocabulary(parsed, data, file)


def parse_tokenizer_json(data: bytes, name: str) -> dict[str, Any]:
    """The JSON of a tokenizer.json, each of its steps there, if only as null. VocabularyError for another."""
    parsed = _parse_object(data, name)
    model = parsed.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
        raise VocabularyError(f"{name}: holds no model with a vocabulary; {_EXPECTED}")
    model["type"] = _kind_of(model)
    if model["type"] not in KINDS:
        raise VocabularyError(f"{name}: its model is {model['type']!r}, expected one of {', '.join(KINDS)}")
    for step in ("normalizer", "pre_tokenizer", "post_processor"):
        if not isinstance(parsed.setdefault(step, None), dict | None):
            raise VocabularyError(f"{name}: {step} is no object; {_EXPECTED}")
    parsed["added_tokens"] = added = parsed.get("added_tokens") or []
    if not isinstance(added, list) or not all(map(_is_added_token, added)):
        raise VocabularyError(f"{name}: added_tokens are no list of tokens with ids; {_EXPECTED}")
    return parsed


def _parse_object(data: bytes, name: str) -> dict[str, Any]:
    try:
        parsed = parse_json_text(data)
    except ValueError as error:
        raise VocabularyError(
            f"{name}: is not JSON ({error}); {_EXPECTED}; a WordPiece vocabulary, one token a line, goes "
            "with --vocab"
        ) from None
    if not isinstance(parsed, dict):
        raise VocabularyError(f"{name}: is JSON, but no object; {_EXPECTED}")
    return parsed


def _kind_of(model: Mapping[str, Any]) -> Any:
    """The model's type. Old files do not name it."""
    if "type" in model:
        return model["type"]
    if isinstance(model["vocab"], list):
        return "Unigram"
    if "merges" in model:
        return "BPE"
    return "WordPiece" if "max_input_chars_per_word" in model else "WordLevel"


def _is_added_token(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("content"), str) and type(item.get("id")) is int


def token_ids(parsed: Mapping[str, Any], name: str) -> dict[str, int]:
    """The id of each token. VocabularyError for ids that no shard can hold."""
    found: dict[str, int] = {}
    for token, number in _tokens(parsed):
        if not isinstance(token, str) or type(number) is not int or not 0 <= number < LARGEST_VOCABULARY:
            raise VocabularyError(
                f"{name}: token {token!r} has the id {number!r}, expected a text with an id of 0 to "
                f"{LARGEST_VOCABULARY - 1}"
            )
        found.setdefault(token, number)
    if not found:
        raise VocabularyError(f"{name}: has no tokens; {_EXPECTED}")
    return found


def _tokens(parsed: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The model's tokens, then the added ones, which may be among them."""
    vocabulary = parsed["model"]["vocab"]
    if isinstance(vocabulary, dict):
        yield from vocabulary.items()
    else:
        for number, item in enumerate(vocabulary):
            yield (item[0] if isinstance(item, list) and item else item), number
    for item in parsed["added_tokens"]:
        yield item["content"], item["id"]


def _vocabulary(parsed: dict[str, Any], data: bytes, file: TokenizerJson) -> Vocabulary:
    ids = token_ids(parsed, file.path)
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
        continues_word=_continuations(parsed, words),
        replacements=tuple(sorted(set(ids.values()))),
        pair_separators=count_separators(parsed["post_processor"]),
        **roles,
    )


def _continuations(parsed: Mapping[str, Any], words: list[str]) -> bytes | None:
    """A byte an id, 1 where it continues a word. None where an id alone does not tell.

    It does where a word is never split before ``##``, as BERT's splitting at each mark guarantees.
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
