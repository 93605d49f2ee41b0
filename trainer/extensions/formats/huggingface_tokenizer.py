"""A tokeniser in Hugging Face's form, and what a model's config.json tells of it."""

import json
from dataclasses import replace
from typing import Any

from bertdata.io import storage
from bertdata.records import Vocabulary
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME, TokenizerFile, TokenizerJson
from bertdata.tokens.kept_files import CONFIGURATION_NAME, role_tokens, vocabulary_text
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.roles import roles_in_template
from bertdata.tokens.tokenizer_json import parse_tokenizer_json
from trainer.checkpoint.stored import Checkpoint
from trainer.extensions.formats.roberta import is_roberta

_BERT = {role: f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")}
_TYPES = {"A": 0, "B": 1}
"""The type of a text's tokens in a template, by its name there."""


def with_padding_id(checkpoint: Checkpoint, file: TokenizerFile) -> Checkpoint:
    """The checkpoint with the id of its tokeniser's padding, by which transformers numbers a RoBERTa's ids.

    SettingsError for a RoBERTa whose tokeniser has none. A BERT of a vocabulary stays as it is.
    """
    config, vocabulary = checkpoint.expect_config(), vocabulary_of(file)
    if is_roberta(config):
        return replace(checkpoint, config=replace(config, pad_token_id=vocabulary.role("pad")))
    if not isinstance(file, TokenizerJson) or vocabulary.pad is None:
        return checkpoint
    return replace(checkpoint, config=replace(config, pad_token_id=vocabulary.pad))


def export_tokenizer(file: TokenizerFile, directory: str, *, longest: int) -> None:
    """Write the tokeniser's files for transformers' AutoTokenizer.

    They are vocab.txt or tokenizer.json, tokenizer_config.json and special_tokens_map.json.
    longest: tokens of the longest sequence that the model takes.
    """
    config: dict[str, Any]
    if isinstance(file, TokenizerJson):
        special = role_tokens(file.roles)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest}
        files = {TOKENIZER_NAME: tokenizer_text(file)}
    else:
        special = role_tokens(tuple(_BERT.items()))
        config = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": file.lower_case,  # strips accents too, unless strip_accents says otherwise
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "model_max_length": longest,
        }
        files = {VOCABULARY_NAME: vocabulary_text(vocabulary_of(file))}
    files[CONFIGURATION_NAME] = _indented(config | special)
    files["special_tokens_map.json"] = _indented(special)
    for name, data in files.items():
        with storage.open_output(storage.join(directory, name)) as output:
            output.write(data)


def tokenizer_text(file: TokenizerJson) -> bytes:
    """The tokenizer.json, byte for byte where it puts cls and sep around a text.

    One that does not gets a template which does, as examples are made here: cls A sep B sep.
    """
    data, vocabulary = storage.read_bytes(file.path), vocabulary_of(file)
    parsed = parse_tokenizer_json(data, file.path)
    own = parsed["post_processor"]
    if any(roles_in_template(own)) or vocabulary.cls is None or vocabulary.sep is None:
        return data
    template = _template(vocabulary, vocabulary.cls, vocabulary.sep)
    processors = [template] if own is None else [own, template]
    whole = {**json.loads(data), "post_processor": {"type": "Sequence", "processors": processors}}
    return json.dumps(whole, ensure_ascii=False, indent=2).encode() + b"\n"


def _template(vocabulary: Vocabulary, cls: int, sep: int) -> dict[str, Any]:
    """The library's post-processor that puts cls before a text, and sep behind each of one or two."""
    tokens = {vocabulary.words[number]: number for number in (cls, sep)}
    before, behind = tokens

    def special(token: str, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": kind}}

    def text(name: str) -> list[dict[str, Any]]:
        kind = _TYPES[name]
        return [{"Sequence": {"id": name, "type_id": kind}}, special(behind, kind)]

    return {
        "type": "TemplateProcessing",
        "single": [special(before, 0), *text("A")],
        "pair": [special(before, 0), *text("A"), *text("B")],
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]} for token, number in tokens.items()
        },
    }


def _indented(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
