"""A tokeniser in Hugging Face's form, and what a model's config.json tells of it."""

import json
from dataclasses import replace
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, TokenizerJson
from bertdata.tokens.json_document import parse_tokenizer_json
from bertdata.tokens.kept_files import CONFIGURATION_NAME, role_tokens, vocabulary_text
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.model_directory.files import ModelFiles
from bertdata.tokens.model_directory.reader import is_of_class
from bertdata.tokens.templates import own_template, post_processor, template_of
from bertdata.tokens.tokenizer_json import tokenizer_bytes
from bertdata.tokens.vocabulary_json import wordpiece_json
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig

_AS_IT_IS, _ROBERTAS = "PreTrainedTokenizerFast", "RobertaTokenizer"
"""transformers' class that takes a tokenizer.json as it is, and RoBERTa's."""

_BERT = {role: f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")}


_ROBERTA_IDS = {"bos_token_id": "cls", "eos_token_id": "sep"}
_MODERNBERT_IDS = {**_ROBERTA_IDS, "cls_token_id": "cls", "sep_token_id": "sep"}
"""Keys of config.json that tell ids beside padding's, as the originals write them, and the role of each."""


def with_token_ids(checkpoint: Checkpoint, file: TokenizerFile) -> Checkpoint:
    """The checkpoint with the ids of its tokeniser's special tokens, as config.json tells them.

    By that of padding transformers numbers a RoBERTa's ids: SettingsError for one whose tokeniser has none. A
    BERT's config tells no other, and one of a vocabulary stays as it is.
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
    """Write the tokeniser's files for transformers' AutoTokenizer, into a directory that has a config.json.

    They are vocab.txt or tokenizer.json, tokenizer_config.json and special_tokens_map.json.
    longest: tokens of the longest sequence that the model takes. needs_json: transformers takes no vocab.txt
    for this kind of model, which gets a tokenizer.json beside it. has_segments: the model tells the second
    text of a pair from the first.
    """
    config: dict[str, Any]
    files: dict[str, bytes]
    if isinstance(file, TokenizerJson):
        special = role_tokens(file.roles)
        text = tokenizer_text(file, has_segments=has_segments)
        files = {TOKENIZER_NAME: text}
        config = {"tokenizer_class": _AS_IT_IS, "model_max_length": longest}
        config["model_input_names"] = input_names(has_segments)
        if _adds_prefix_space(text, file.path):
            # transformers 4 takes this from here, whatever tokenizer.json says.
            config["add_prefix_space"] = True
    else:
        special = role_tokens(tuple(_BERT.items()))
        config = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": file.lower_case,  # strips accents too, unless strip_accents says otherwise
            "strip_accents": False if file.keep_accents else None,
            "tokenize_chinese_chars": True,
            "model_max_length": longest,
        }
        files = {VOCABULARY_NAME: vocabulary_text(vocabulary_of(file))}
        if needs_json:
            config["tokenizer_class"] = _AS_IT_IS
            files[TOKENIZER_NAME] = wordpiece_json(file)
        if not has_segments:
            config["model_input_names"] = input_names(has_segments)
    files[CONFIGURATION_NAME] = _indented(config | special)
    files["special_tokens_map.json"] = _indented(special)
    for name, data in files.items():
        _write(directory, name, data)
    # RoBERTa's class knows one segment alone.
    if isinstance(file, TokenizerJson) and not has_segments and _is_robertas(directory, config | special):
        _write(directory, CONFIGURATION_NAME, _indented({**config, "tokenizer_class": _ROBERTAS} | special))


def input_names(has_segments: bool) -> list[str]:
    """Return the names of a model's inputs, in transformers' order.

    transformers 4 gives segments to a model that has none unless it is told so, transformers 5 gives none.
    """
    return ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]


def tokenizer_text(file: TokenizerJson, *, has_segments: bool = True) -> bytes:
    """Return the tokenizer.json with which the tokenizers library alone makes what this trainer makes.

    That is the file byte for byte, unless it cuts or pads texts, draws its merges, or puts other special
    tokens around a text or a pair than examples have here. has_segments: it tells the segments too.
    """
    data, vocabulary = tokenizer_bytes(file.path), vocabulary_of(file)
    whole = parse_json_text(data)
    changed: dict[str, Any] = {key: None for key in ("truncation", "padding") if whole.get(key) is not None}
    if whole["model"].get("dropout"):
        changed["model"] = {**whole["model"], "dropout": None}
    if vocabulary.cls is not None and vocabulary.sep is not None:
        own = whole.get("post_processor")
        wanted = own_template(vocabulary.cls, vocabulary.sep, vocabulary.pair_separators)
        found = template_of(own)
        if found is None or not found.makes(wanted, has_segments):
            changed["post_processor"] = post_processor(wanted, vocabulary, own)
    if not changed:
        return data
    return json.dumps({**whole, **changed}, ensure_ascii=False, indent=2).encode() + b"\n"


def _adds_prefix_space(text: bytes, path: str) -> bool:
    """Return True where the file's byte-level pre-tokeniser puts a blank before a text."""
    splitting = parse_tokenizer_json(text, path)["pre_tokenizer"] or {}
    return splitting.get("type") == "ByteLevel" and bool(splitting.get("add_prefix_space"))


def _is_robertas(directory: str, config: dict[str, Any]) -> bool:
    """Return True where transformers' RobertaTokenizer makes the same of a RoBERTa's directory.

    With that class, unlike with the one that takes a tokenizer.json as it is, ``add_prefix_space=True`` of
    ``from_pretrained`` has an effect in transformers 5; tokens of words are classified with it.
    """
    files = ModelFiles(directory)
    model = files.tokenizer_json["model"] if files.tokenizer_json else {}
    if files.config.get("model_type") != "roberta" or model.get("type") != "BPE":
        return False
    try:
        return is_of_class(files, _ROBERTAS, config)
    except VocabularyError:
        return False


def _write(directory: str, name: str, data: bytes) -> None:
    with storage.open_output(storage.join(directory, name)) as output:
        output.write(data)


def _indented(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
