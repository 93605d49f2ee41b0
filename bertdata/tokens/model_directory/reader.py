"""Reads the tokeniser of a model's directory, with the ids of transformers' AutoTokenizer.

The result is a tokenizer.json.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.dialects import find_dialect
from bertdata.errors import MissingInputError, VocabularyError
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, VocabularyFile
from bertdata.tokens.json_document import read_token_ids
from bertdata.tokens.model_directory.added_tokens import (
    DirectoryTokens,
    add_tokens,
    read_added_tokens,
    read_tokens_of_json,
)
from bertdata.tokens.model_directory.classes import CLASSES, LONGEST_WORD, Parts
from bertdata.tokens.model_directory.files import TOKENIZER_CONFIG_NAME, ModelFiles
from bertdata.tokens.model_directory.tokenizer_class import BACKEND, find_class, make_unknown_class_error
from bertdata.tokens.roles import count_separators, find_roles_in_template
from bertdata.tokens.vocabulary import parse_vocabulary


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ModelTokenizer:
    """A model's tokeniser.

    directory: the model's directory.
    parsed: the complete tokeniser as a parsed tokenizer.json.
    named: text of each special token by name, such as "mask_token".
    own_file: path of the directory's tokenizer.json if it describes the same tokeniser, else None.
    vocabulary: the directory's vocab.txt if it and its casing describe the same tokeniser, else None. BERT's
    original programs can read it too.
    """

    directory: str
    parsed: Parts
    named: Mapping[str, str]
    own_file: str | None
    vocabulary: VocabularyFile | None

    def dump(self) -> bytes:
        """Return the bytes of a tokenizer.json that describes the whole tokeniser."""
        return json.dumps(self.parsed, ensure_ascii=False, indent=2).encode() + b"\n"


def read_model_tokenizer(directory: str) -> ModelTokenizer:
    """Read the tokeniser that AutoTokenizer of transformers 5 makes from the directory.

    MissingInputError if the directory has no tokeniser. VocabularyError if transformers refuses it, or if its
    class is not known here.
    """
    files = ModelFiles(directory)
    _check_directory(files)
    name = find_class(files)
    if name is None or name == BACKEND:
        parts, added = _read_json_as_it_is(files)
    elif name in CLASSES:
        parts, added = _make_by_class(files, name)
    else:
        raise make_unknown_class_error(files, name, (*CLASSES, "PreTrainedTokenizerFast"))
    json_parts = files.tokenizer_json
    return ModelTokenizer(
        directory=directory,
        parsed=parts,
        named={name: token.content for name, token in added.named.items()},
        own_file=files.path(TOKENIZER_NAME)
        if json_parts is not None and _are_equivalent(json_parts, parts)
        else None,
        vocabulary=_find_plain_vocabulary(files, parts) if name == "BertTokenizer" else None,
    )


def is_of_class(files: ModelFiles, name: str, settings: Mapping[str, Any]) -> bool:
    """Return True if a class of tokeniser would make the same tokeniser as the directory's tokenizer.json.

    Segment numbers may differ.
    name: name of the class. settings: content of tokenizer_config.json, in which the class is replaced.
    VocabularyError if the class cannot make a tokeniser from the directory.
    """
    named = ModelFiles(files.directory)
    named.replace(TOKENIZER_CONFIG_NAME, {**settings, "tokenizer_class": name})
    json_parts = files.tokenizer_json
    return json_parts is not None and _are_equivalent(json_parts, _make_by_class(named, name)[0])


def _check_directory(files: ModelFiles) -> None:
    """Raise VocabularyError if a file of the directory has a setting whose effect on a text's ids is not
    known here.
    """
    where, settings = files.name(TOKENIZER_CONFIG_NAME), files.tokenizer_config
    if settings.get("split_special_tokens"):
        raise VocabularyError(
            f"{where}: split_special_tokens is {settings['split_special_tokens']!r}, which is not known "
            "here; expected false"
        )
    files_by_version = settings.get("fast_tokenizer_files")
    if files_by_version and files_by_version != [TOKENIZER_NAME]:
        raise VocabularyError(
            f"{where}: fast_tokenizer_files names several files, one for each version of transformers; give "
            "one of them"
        )


def _read_json_as_it_is(files: ModelFiles) -> tuple[Parts, DirectoryTokens]:
    """Return the directory's tokenizer.json, with the tokens that the other files add."""
    json_parts = files.tokenizer_json
    if json_parts is None:
        remedy = (
            "save its tokeniser with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
        if path := files.path(VOCABULARY_NAME):
            remedy = f"give --vocab {path} instead"
        raise MissingInputError(f"{files.directory}: holds no {TOKENIZER_NAME}; {remedy}")
    known = read_tokens_of_json(json_parts)
    added = read_added_tokens(files, {}, (token.content for token in known))
    return {
        **json_parts,
        "added_tokens": add_tokens(known, added.tokens, _read_model_ids(json_parts, files)),
    }, added


def _make_by_class(files: ModelFiles, name: str) -> tuple[Parts, DirectoryTokens]:
    """Return the steps that the class makes, with the vocabulary and the added tokens of the directory."""
    # transformers builds the model first, then adds the added tokens, and makes the post-processor last,
    # because it needs the ids of special tokens that are only known then.
    kind = CLASSES[name]
    parts: Parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    parts |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    added = read_added_tokens(files, kind.defaults, ())
    missing = [name for name in kind.needed if name not in added.named]
    if missing:
        raise VocabularyError(
            f"{files.name(TOKENIZER_CONFIG_NAME)}: {missing[0]} is null, but a {name} needs one; expected a "
            "token's text"
        )
    named = {name: token.content for name, token in added.named.items()}
    parts |= kind.make_steps(files, named)
    vocabulary = _read_model_ids(parts, files)
    parts["added_tokens"] = add_tokens((), added.tokens, vocabulary)
    ids = {**{entry["content"]: entry["id"] for entry in parts["added_tokens"]}, **vocabulary}
    if kind.make_processor is not None:
        parts["post_processor"] = kind.make_processor(files, named, ids.get)
    elif files.tokenizer_json is not None:
        parts["post_processor"] = files.tokenizer_json["post_processor"]
    return parts, added


def _read_model_ids(parts: Parts, files: ModelFiles) -> dict[str, int]:
    """Return the id of each token in the vocabulary of the tokeniser's model, without added tokens."""
    return read_token_ids({**parts, "added_tokens": []}, files.directory)


_MODEL_DEFAULTS: dict[str, dict[str, Any]] = {
    "BPE": {
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    },
    "WordPiece": {"max_input_chars_per_word": LONGEST_WORD, "continuing_subword_prefix": "##"},
    "Unigram": {"unk_id": None, "byte_fallback": False},
    "WordLevel": {},
}
"""Meaning of keys that a model in a tokenizer.json leaves out."""


def _are_equivalent(json_parts: Parts, made: Parts) -> bool:
    """Return True if two parsed tokenizer.json give the same ids, positions, roles and separators."""
    return _normalise_json(json_parts) == _normalise_json(made)


def _normalise_json(parsed: Parts) -> tuple[Any, ...]:
    """Return all parts of a tokenizer.json that determine ids, positions, roles and separators.

    Different spellings of the same setting are made equal.
    """
    model = {**_MODEL_DEFAULTS[parsed["model"]["type"]], **parsed["model"]}
    # All readers in this package ignore dropout, and an empty prefix or suffix is the same as none.
    model["dropout"] = None
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        model[key] = model.get(key) or None
    if isinstance(merges := model.get("merges"), list):
        model["merges"] = [pair.split(" ") if isinstance(pair, str) else pair for pair in merges]
    normalizer = parsed["normalizer"]
    if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
        normalizer = {"strip_accents": None, **normalizer}
    added = sorted(
        ({key: item for key, item in token.items() if key != "special"} for token in parsed["added_tokens"]),
        key=lambda token: int(token["id"]),
    )
    processor = parsed["post_processor"]
    around = (list(find_roles_in_template(processor)), count_separators(processor), _find_trimming(processor))
    return model, normalizer, parsed["pre_tokenizer"], added, around


def _find_trimming(processor: Any) -> list[Any]:
    """Return the settings of the post-processor's parts that remove blanks from a token's position."""
    if not isinstance(processor, dict):
        return []
    if isinstance(inner := processor.get("processors"), list):
        return [found for part in inner for found in _find_trimming(part)]
    if processor.get("type") in ("ByteLevel", "RobertaProcessing") and processor.get("trim_offsets"):
        return [processor.get("add_prefix_space")]
    return []


_ROLES = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


def _find_plain_vocabulary(files: ModelFiles, parts: Parts) -> VocabularyFile | None:
    """Return the directory's vocab.txt if it and its casing describe the tokeniser completely, else None."""
    data, normalizer, model = files.read(VOCABULARY_NAME), parts["normalizer"], parts["model"]
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    is_plain = (
        normalizer["handle_chinese_chars"]
        and normalizer["strip_accents"] in (None, normalizer["lowercase"])
        and model["unk_token"] == "[UNK]"
        and all(
            token["content"] in _ROLES and usual.items() <= token.items() for token in parts["added_tokens"]
        )
    )
    if data is None or not is_plain:
        return None
    path = files.name(VOCABULARY_NAME)
    try:
        words = parse_vocabulary(data, path, find_dialect("google"))
    except VocabularyError:  # a special token is missing, which transformers would add
        return None
    if words.ids != model["vocab"]:
        return None
    return VocabularyFile(path=path, dialect="google", lower_case=normalizer["lowercase"])
