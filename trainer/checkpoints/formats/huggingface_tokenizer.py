"""A tokeniser in Hugging Face's form, and what a model's config.json tells of it."""

import json
from dataclasses import replace
from typing import Any

from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, TokenizerJson
from bertdata.tokens.json_document import parse_tokenizer_json
from bertdata.tokens.kept_files import CONFIGURATION_NAME, role_tokens, vocabulary_text
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.roles import roles_in_template
from bertdata.tokens.tokenizer_json import tokenizer_bytes
from bertdata.tokens.vocabulary_json import bert_template, wordpiece_json
from trainer.checkpoints.any_checkpoint import Checkpoint
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig

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
    """Write the tokeniser's files for transformers' AutoTokenizer.

    They are vocab.txt or tokenizer.json, tokenizer_config.json and special_tokens_map.json.
    longest: tokens of the longest sequence that the model takes. needs_json: transformers takes no vocab.txt
    for this kind of model, which gets a tokenizer.json beside it. has_segments: the model tells the second
    text of a pair from the first, which transformers does of a tokenizer.json only where it is told.
    """
    config: dict[str, Any]
    if isinstance(file, TokenizerJson):
        special = role_tokens(file.roles)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest}
        if has_segments:
            config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        files = {TOKENIZER_NAME: tokenizer_text(file)}
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
            config["tokenizer_class"] = "PreTrainedTokenizerFast"
            files[TOKENIZER_NAME] = wordpiece_json(file)
    files[CONFIGURATION_NAME] = _indented(config | special)
    files["special_tokens_map.json"] = _indented(special)
    for name, data in files.items():
        with storage.open_output(storage.join(directory, name)) as output:
            output.write(data)


def tokenizer_text(file: TokenizerJson) -> bytes:
    """The tokenizer.json, byte for byte where it puts cls and sep around a text.

    One that does not gets a template which does, as examples are made here: cls A sep B sep.
    """
    data, vocabulary = tokenizer_bytes(file.path), vocabulary_of(file)
    parsed = parse_tokenizer_json(data, file.path)
    own = parsed["post_processor"]
    if any(roles_in_template(own)) or vocabulary.cls is None or vocabulary.sep is None:
        return data
    template = bert_template(vocabulary, vocabulary.cls, vocabulary.sep)
    processors = [template] if own is None else [own, template]
    whole = {**parse_json_text(data), "post_processor": {"type": "Sequence", "processors": processors}}
    return json.dumps(whole, ensure_ascii=False, indent=2).encode() + b"\n"


def _indented(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
