"""Writing a tokeniser in Hugging Face's format, and the ids of special tokens in config.json."""

import json
from dataclasses import replace
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, TokenizerJson
from bertdata.tokens.json_document import parse_tokenizer_json
from bertdata.tokens.kept_files import CONFIGURATION_NAME, format_vocabulary, name_role_tokens
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.model_directory.files import ModelFiles
from bertdata.tokens.model_directory.reader import matches_class
from bertdata.tokens.templates import make_post_processor, make_template, read_template
from bertdata.tokens.tokenizer_json import read_tokenizer_bytes
from bertdata.tokens.vocabulary_json import convert_wordpiece
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig

_GENERIC_CLASS, _ROBERTA_CLASS = "PreTrainedTokenizerFast", "RobertaTokenizer"
"""Two tokeniser classes of transformers: the class that uses any tokenizer.json, and RoBERTa's class."""

_BERT_TOKENS = {role: f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")}
"""The text of each special token in a BERT vocabulary, by its role: cls is [CLS]."""


_ROBERTA_IDS = {"bos_token_id": "cls", "eos_token_id": "sep"}
_MODERNBERT_IDS = {**_ROBERTA_IDS, "cls_token_id": "cls", "sep_token_id": "sep"}
"""Keys of config.json for ids of special tokens, and the role of each token. The original models' files have
the same keys.
"""


def set_special_token_ids(checkpoint: Checkpoint, file: TokenizerFile) -> Checkpoint:
    """Take the ids of special tokens for config.json from the tokeniser. Return the changed checkpoint.

    A BERT's config.json has only the padding id. For a vocab.txt it keeps its default, 0. A RoBERTa must have
    a padding token, because transformers numbers its positions from the padding id. SettingsError for a
    RoBERTa without such a token.
    """
    config, vocabulary = checkpoint.expect_config(), vocabulary_of(file)
    keys: dict[str, str] = {}
    if isinstance(config, RobertaConfig | ModernBertConfig):
        keys = _ROBERTA_IDS if isinstance(config, RobertaConfig) else _MODERNBERT_IDS
    ids = {key: getattr(vocabulary, role) for key, role in keys.items()}
    ids = {key: number for key, number in ids.items() if number is not None}
    checkpoint = replace(checkpoint, token_ids=ids)
    if isinstance(config, RobertaConfig):
        return replace(checkpoint, config=replace(config, pad_token_id=vocabulary.role("pad")))
    if not isinstance(file, TokenizerJson) or vocabulary.pad is None:
        return checkpoint
    return replace(checkpoint, config=replace(config, pad_token_id=vocabulary.pad))


def export_tokenizer(
    file: TokenizerFile, directory: str, *, longest: int, needs_json: bool = False, has_segments: bool = False
) -> None:
    """Write the files from which transformers' AutoTokenizer makes the same tokeniser.

    The files are vocab.txt or tokenizer.json, tokenizer_config.json and special_tokens_map.json.
    directory: directory of the model, which already has a config.json.
    longest: largest number of tokens in a sequence.
    needs_json: True adds a tokenizer.json, for an architecture whose vocab.txt transformers does not read.
    has_segments: whether the model has token types (segments), which distinguish the two texts of a pair.
    """
    config: dict[str, Any]
    files: dict[str, bytes]
    if isinstance(file, TokenizerJson):
        special = name_role_tokens(file.roles)
        text = make_tokenizer_json(file, has_segments=has_segments)
        files = {TOKENIZER_NAME: text}
        config = {"tokenizer_class": _GENERIC_CLASS, "model_max_length": longest}
        config["model_input_names"] = list_input_names(has_segments)
        if _adds_prefix_space(text, file.path):
            # transformers 4 reads this value from tokenizer_config.json and ignores the value in
            # tokenizer.json.
            config["add_prefix_space"] = True
    else:
        special = name_role_tokens(tuple(_BERT_TOKENS.items()))
        config = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": file.lower_case,  # also strips accents, unless strip_accents is False
            "strip_accents": False if file.keep_accents else None,
            "tokenize_chinese_chars": True,
            "model_max_length": longest,
        }
        files = {VOCABULARY_NAME: format_vocabulary(vocabulary_of(file))}
        if needs_json:
            config["tokenizer_class"] = _GENERIC_CLASS
            files[TOKENIZER_NAME] = convert_wordpiece(file)
        if not has_segments:
            config["model_input_names"] = list_input_names(has_segments)
    files[CONFIGURATION_NAME] = _format_json(config | special)
    files["special_tokens_map.json"] = _format_json(special)
    for name, data in files.items():
        _write_file(directory, name, data)
    # RobertaTokenizer always makes a single segment, so it must not be named for a model with segments.
    if (
        isinstance(file, TokenizerJson)
        and not has_segments
        and _is_roberta_tokenizer(directory, config | special)
    ):
        _write_file(
            directory,
            CONFIGURATION_NAME,
            _format_json({**config, "tokenizer_class": _ROBERTA_CLASS} | special),
        )


def list_input_names(has_segments: bool) -> list[str]:
    """Return the names of a model's inputs for tokenizer_config.json, in transformers' order.

    Without these names in the file, transformers 4 passes token types to every model, even if it has none.
    """
    return ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]


def make_tokenizer_json(file: TokenizerJson, *, has_segments: bool = True) -> bytes:
    """Return a tokenizer.json with which the library ``tokenizers`` turns a text into the same ids as this
    trainer.

    A file that already does so is returned unchanged. Removed are truncation, padding and merges that are
    skipped at random. Replaced is a template that adds other special tokens to a text than this trainer adds.
    has_segments: True if the token type ids (segments) must be the same too.
    """
    data, vocabulary = read_tokenizer_bytes(file.path), vocabulary_of(file)
    whole = parse_json_text(data)
    changed: dict[str, Any] = {key: None for key in ("truncation", "padding") if whole.get(key) is not None}
    if whole["model"].get("dropout"):
        changed["model"] = {**whole["model"], "dropout": None}
    if vocabulary.cls is not None and vocabulary.sep is not None:
        own = whole.get("post_processor")
        wanted = make_template(vocabulary.cls, vocabulary.sep, vocabulary.pair_separators)
        found = read_template(own)
        if found is None or not found.gives_same_ids(wanted, has_segments):
            changed["post_processor"] = make_post_processor(wanted, vocabulary, own)
    if not changed:
        return data
    return json.dumps({**whole, **changed}, ensure_ascii=False, indent=2).encode() + b"\n"


def _adds_prefix_space(text: bytes, path: str) -> bool:
    """Return whether the byte-level pre-tokeniser puts a blank before a text."""
    splitting = parse_tokenizer_json(text, path)["pre_tokenizer"] or {}
    return splitting.get("type") == "ByteLevel" and bool(splitting.get("add_prefix_space"))


def _is_roberta_tokenizer(directory: str, config: dict[str, Any]) -> bool:
    """Return whether the directory is a RoBERTa's and transformers' RobertaTokenizer reads its tokeniser
    correctly.

    RobertaTokenizer is preferred because in transformers 5 it obeys ``add_prefix_space=True`` of
    ``from_pretrained``, which users need to classify single words. PreTrainedTokenizerFast ignores it.
    """
    files = ModelFiles(directory)
    model = files.tokenizer_json["model"] if files.tokenizer_json else {}
    if files.config.get("model_type") != "roberta" or model.get("type") != "BPE":
        return False
    try:
        return matches_class(files, _ROBERTA_CLASS, config)
    except VocabularyError:
        return False


def _write_file(directory: str, name: str, data: bytes) -> None:
    """Write a file into the directory."""
    with storage.open_output(storage.join(directory, name)) as output:
        output.write(data)


def _format_json(value: dict[str, Any]) -> bytes:
    """Return the value as indented JSON."""
    return json.dumps(value, indent=2).encode() + b"\n"
