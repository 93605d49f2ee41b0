"""Reads the tokeniser of a model's directory as a tokenizer.json.

It gives the same ids as transformers' AutoTokenizer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.config.dialects import find_dialect
from bertdata.errors import MissingInputError, VocabularyError
from bertdata.tokens.added_ids import number_added_tokens
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, VocabularyFile
from bertdata.tokens.json_document import read_token_ids
from bertdata.tokens.model_directory.added_tokens import (
    DirectoryTokens,
    add_tokens,
    read_added_tokens,
    read_json_tokens,
)
from bertdata.tokens.model_directory.classes import CLASSES, LONGEST_WORD, Parts
from bertdata.tokens.model_directory.files import TOKENIZER_CONFIG_NAME, ModelFiles
from bertdata.tokens.model_directory.tokenizer_class import BACKEND, find_class, make_unknown_class_error
from bertdata.tokens.roles import count_separators, find_roles_in_template
from bertdata.tokens.vocabulary import parse_vocabulary


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ModelTokenizer:
    """Tokeniser of a model's directory.

    directory: path of the directory.
    parsed: the whole tokeniser as a parsed tokenizer.json.
    named: text of each special token by its key, such as "mask_token".
    own_file: path of the directory's own tokenizer.json if it describes the same tokeniser, otherwise None.
    vocabulary: the directory's vocab.txt if this file and its casing describe the same tokeniser, otherwise
        None. The original programs of BERT can read such a file too.
    """

    directory: str
    parsed: Parts
    named: Mapping[str, str]
    own_file: str | None
    vocabulary: VocabularyFile | None

    def dump(self) -> bytes:
        """Return the content of a tokenizer.json that describes the whole tokeniser."""
        return json.dumps(self.parsed, ensure_ascii=False, indent=2).encode() + b"\n"


def read_model_tokenizer(directory: str) -> ModelTokenizer:
    """Read the tokeniser that AutoTokenizer of transformers 5 makes from a model's directory.

    Raises MissingInputError if the directory has no tokeniser.
    Raises VocabularyError if transformers refuses the directory, or if the class of its tokeniser is not
    known here.
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
        own_file=files.find_path(TOKENIZER_NAME)
        if json_parts is not None and _are_equivalent(json_parts, parts)
        else None,
        vocabulary=_find_plain_vocabulary(files, parts) if name == "BertTokenizer" else None,
    )


def matches_class(files: ModelFiles, name: str, settings: Mapping[str, Any]) -> bool:
    """Return True if a class of tokeniser gives the same result as the directory's tokenizer.json.

    Differences between their segment numbers are ignored.

    name: name of the class.
    settings: content of tokenizer_config.json, in which the name of the class is replaced.

    Raises VocabularyError if the class cannot make a tokeniser from the directory.
    """
    named = ModelFiles(files.directory)
    named.replace_object(TOKENIZER_CONFIG_NAME, {**settings, "tokenizer_class": name})
    json_parts = files.tokenizer_json
    return json_parts is not None and _are_equivalent(json_parts, _make_by_class(named, name)[0])


def _check_directory(files: ModelFiles) -> None:
    """Raise VocabularyError if tokenizer_config.json has a setting whose effect is not known here."""
    where, settings = files.make_path(TOKENIZER_CONFIG_NAME), files.tokenizer_config
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
    """Return the directory's tokenizer.json, together with the tokens that other files of the directory
    add.
    """
    json_parts = files.tokenizer_json
    if json_parts is None:
        remedy = (
            "save its tokeniser with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
        if path := files.find_path(VOCABULARY_NAME):
            remedy = f"give --vocab {path} instead"
        raise MissingInputError(f"{files.directory}: holds no {TOKENIZER_NAME}; {remedy}")
    known = read_json_tokens(json_parts)
    added = read_added_tokens(files, {}, (token.content for token in known))
    vocabulary = _read_model_ids(json_parts, files)
    entries = add_tokens(known, added.tokens, vocabulary)
    # A tokenizer.json has no room for ids that follow from two steps: its tokens are all added in one.
    reloaded = number_added_tokens((entry["content"] for entry in entries), vocabulary)
    for entry, number in zip(entries, reloaded, strict=True):
        if entry["id"] != number:
            raise VocabularyError(
                f"{files.directory}: AutoTokenizer gives {entry['content']!r} the id {entry['id']}, and "
                f"{number} once its tokeniser is saved and loaded again; list the token in {TOKENIZER_NAME}"
            )
    return {**json_parts, "added_tokens": entries}, added


def _make_by_class(files: ModelFiles, name: str) -> tuple[Parts, DirectoryTokens]:
    """Make a tokenizer.json as a class of transformers does, from a directory's vocabulary and added tokens.

    The class determines the steps: normalisation, division into words, and post-processing.

    name: name of the class, for example "RobertaTokenizer".
    """
    # The order of the steps is that of transformers: first the model, then the added tokens. The
    # post-processor comes last, because it needs the ids of special tokens, which are known only then.
    kind = CLASSES[name]
    parts: Parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    parts |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None}
    added = read_added_tokens(files, kind.defaults, ())
    missing = [name for name in kind.needed if name not in added.named]
    if missing:
        raise VocabularyError(
            f"{files.make_path(TOKENIZER_CONFIG_NAME)}: {missing[0]} is null, but a {name} needs one; "
            "expected a token's text"
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
"""Values of the keys that a tokenizer.json may leave out, by the type of its model."""


def _are_equivalent(json_parts: Parts, made: Parts) -> bool:
    """Return True if two parsed tokenizer.json give the same ids, positions, roles and separators.

    json_parts: the directory's own tokenizer.json.
    made: the tokenizer.json of the whole tokeniser, which may be made by a class or have further added
        tokens.
    """
    return _list_decisive_parts(json_parts) == _list_decisive_parts(made)


def _list_decisive_parts(parsed: Parts) -> tuple[Any, ...]:
    """Return the parts of a tokenizer.json that determine ids, positions, roles and separators, for
    comparison.

    If a setting can be written in different ways, the result has only one of them.
    """
    model = {**_MODEL_DEFAULTS[parsed["model"]["type"]], **parsed["model"]}
    # All readers in this package ignore dropout. An empty prefix or suffix means the same as null.
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
    """Return the setting add_prefix_space of each step that removes blanks from the positions of tokens.

    processor: post-processor, in which such steps are searched for.
    """
    if not isinstance(processor, dict):
        return []
    if isinstance(inner := processor.get("processors"), list):
        return [found for part in inner for found in _find_trimming(part)]
    if processor.get("type") in ("ByteLevel", "RobertaProcessing") and processor.get("trim_offsets"):
        return [processor.get("add_prefix_space")]
    return []


_ROLES = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


def _find_plain_vocabulary(files: ModelFiles, parts: Parts) -> VocabularyFile | None:
    """Return the directory's vocab.txt as a vocabulary file, or None if it does not describe the whole
    tokeniser.

    parts: the whole tokeniser as a parsed tokenizer.json.
    """
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
    path = files.make_path(VOCABULARY_NAME)
    try:
        words = parse_vocabulary(data, path, find_dialect("google"))
    except VocabularyError:  # A special token is missing in the file. transformers would add it.
        return None
    if words.ids != model["vocab"]:
        return None
    return VocabularyFile(path=path, dialect="google", lower_case=normalizer["lowercase"])
