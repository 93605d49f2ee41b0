"""Pipeline steps that transformers 5 gives each class of tokeniser, as parts of a tokenizer.json.

These classes take only the vocabulary from the directory's tokenizer.json. The settings for lower case,
accents and the blank before a text come from tokenizer_config.json.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bertdata.errors import VocabularyError
from bertdata.tokens.files import TOKENIZER_NAME, VOCABULARY_NAME
from bertdata.tokens.model_directory.files import (
    BPE_VOCABULARY_NAME,
    MERGES_NAME,
    TOKENIZER_CONFIG_NAME,
    ModelFiles,
)

Parts = dict[str, Any]
"""Parts of a parsed tokenizer.json by key, such as "normalizer"."""

SpecialTokenTexts = Mapping[str, str]
"""Text of each special token by its key, such as "cls_token"."""

FindId = Callable[[str], int | None]
"""Function that returns the id of a token, or None if there is no such token."""

LONGEST_WORD = 100
"""Longest word in characters that transformers' BertTokenizer splits into pieces.

A longer word becomes the unknown token.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerClass:
    """A class of tokeniser in transformers.

    defaults: text of each special token by its key, such as "cls_token".
    needed: keys of the special tokens that must not be null.
    make_steps: function that makes the model, normaliser, pre-tokeniser and decoder from the files of a
        directory and the special tokens.
    make_processor: function that makes the post-processor. None means that the post-processor of the
        directory's tokenizer.json is used.
    """

    defaults: Mapping[str, str]
    needed: tuple[str, ...]
    make_steps: Callable[[ModelFiles, SpecialTokenTexts], Parts]
    make_processor: Callable[[ModelFiles, SpecialTokenTexts, FindId], Parts] | None


def _make_bert_steps(files: ModelFiles, named: SpecialTokenTexts) -> Parts:
    """Make the model, normaliser, pre-tokeniser and decoder of transformers' BertTokenizer."""
    model = _read_json_model(files, "BertTokenizer", "WordPiece")
    vocabulary = _read_words(files, "BertTokenizer") if model is None else model["vocab"]
    return {
        "model": {
            "type": "WordPiece",
            "unk_token": named["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": vocabulary,
        },
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": _read_switch(files, "tokenize_chinese_chars", True),
            "strip_accents": _read_switch(files, "strip_accents", None),
            "lowercase": _read_switch(files, "do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def _make_bert_processor(files: ModelFiles, named: SpecialTokenTexts, ids: FindId) -> Parts:
    """Make the post-processor of transformers' BertTokenizer, which adds [CLS] and [SEP]."""
    cls, sep = named["cls_token"], named["sep_token"]
    first = [_make_special_token(cls, 0), _make_sequence("A", 0), _make_special_token(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, _make_sequence("B", 1), _make_special_token(sep, 1)],
        "special_tokens": _make_template_tokens((cls, sep), ids),
    }


def _make_byte_level_steps(files: ModelFiles, named: SpecialTokenTexts) -> Parts:
    """Make the model, pre-tokeniser and decoder of transformers' RobertaTokenizer and GPT2Tokenizer."""
    prefix = bool(_read_switch(files, "add_prefix_space", False))
    model = _read_json_model(files, "byte-level BPE", "BPE")
    vocabulary, merges = (
        (model["vocab"], model.get("merges")) if model is not None else _read_vocabulary_and_merges(files)
    )
    if not isinstance(merges, list):
        raise VocabularyError(f"{files.make_path(TOKENIZER_NAME)}: its BPE has no list of merges")
    return {
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": prefix,
            "trim_offsets": True,
            "use_regex": True,
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    }


def _make_roberta_processor(files: ModelFiles, named: SpecialTokenTexts, ids: FindId) -> Parts:
    """Make the post-processor of transformers' RobertaTokenizer, which adds <s> and </s>."""
    return {
        "type": "RobertaProcessing",
        "sep": [named["sep_token"], ids(named["sep_token"])],
        "cls": [named["cls_token"], ids(named["cls_token"])],
        "trim_offsets": bool(_read_switch(files, "trim_offsets", True)),
        "add_prefix_space": bool(_read_switch(files, "add_prefix_space", False)),
    }


def _make_xlm_roberta_steps(files: ModelFiles, named: SpecialTokenTexts) -> Parts:
    """Make the model, normaliser, pre-tokeniser and decoder of transformers' XLMRobertaTokenizer."""
    model = _read_json_model(files, "XLMRobertaTokenizer", "Unigram")
    if model is None:
        raise VocabularyError(
            f"{files.directory}: holds no {TOKENIZER_NAME}, of which its XLMRobertaTokenizer is read here; "
            "save it with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    scheme = "always" if _read_switch(files, "add_prefix_space", True) else "never"
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}
    return {
        "model": {"type": "Unigram", "unk_id": 3, "vocab": model["vocab"], "byte_fallback": False},
        "normalizer": _find_character_map(files.tokenizer_json),
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace],
        },
        "decoder": metaspace,
    }


def _make_xlm_roberta_processor(files: ModelFiles, named: SpecialTokenTexts, ids: FindId) -> Parts:
    """Make the post-processor of transformers' XLMRobertaTokenizer, which adds <s> and </s>."""
    cls, sep = named["bos_token"], named["eos_token"]
    first = [_make_special_token(cls, 0), _make_sequence("A", 0), _make_special_token(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": first,
        "pair": [*first, _make_special_token(sep, 0), _make_sequence("B", 0), _make_special_token(sep, 0)],
        "special_tokens": _make_template_tokens((cls, sep), ids),
    }


_ROBERTA_TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": "<mask>",
}

CLASSES: dict[str, TokenizerClass] = {
    "BertTokenizer": TokenizerClass(
        defaults={f"{role}_token": f"[{role.upper()}]" for role in ("unk", "sep", "pad", "cls", "mask")},
        needed=("unk_token", "cls_token", "sep_token"),
        make_steps=_make_bert_steps,
        make_processor=_make_bert_processor,
    ),
    "RobertaTokenizer": TokenizerClass(
        defaults=_ROBERTA_TOKENS,
        needed=("cls_token", "sep_token"),
        make_steps=_make_byte_level_steps,
        make_processor=_make_roberta_processor,
    ),
    "GPT2Tokenizer": TokenizerClass(
        defaults=dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
        needed=(),
        make_steps=_make_byte_level_steps,
        make_processor=None,
    ),
    "XLMRobertaTokenizer": TokenizerClass(
        defaults=_ROBERTA_TOKENS,
        needed=("bos_token", "eos_token"),
        make_steps=_make_xlm_roberta_steps,
        make_processor=_make_xlm_roberta_processor,
    ),
}
"""The classes of transformers whose pipeline steps are known here, by name.

The class that uses a tokenizer.json unchanged is not in this table.
"""


def _read_switch(files: ModelFiles, name: str, default: bool | None) -> bool | None:
    """Return a setting of tokenizer_config.json that is true or false.

    name: key of the setting.
    default: value if the file does not have the key. If it is None, the setting may also be null.

    Raises VocabularyError for any other value.
    """
    value = files.tokenizer_config.get(name, default)
    if isinstance(value, bool) or value is default is None:
        return value
    raise VocabularyError(
        f"{files.make_path(TOKENIZER_CONFIG_NAME)}: {name} is {value!r}, expected true or false"
    )


def _read_json_model(files: ModelFiles, name: str, kind: str) -> Parts | None:
    """Return the model in the directory's tokenizer.json, or None if there is no such file.

    name: name of the tokeniser's class.
    kind: type of model that this class needs.

    Raises VocabularyError if the file has another type.
    """
    parsed = files.tokenizer_json
    if parsed is None:
        return None
    model: Parts = parsed["model"]
    if model["type"] != kind:
        raise VocabularyError(
            f"{files.make_path(TOKENIZER_NAME)}: its model is {model['type']}, but the directory's class of "
            f"tokeniser is a {kind} ({name}); correct tokenizer_class in {TOKENIZER_CONFIG_NAME}, with "
            "PreTrainedTokenizerFast this file is taken as it is"
        )
    return model


def _read_words(files: ModelFiles, name: str) -> dict[str, int]:
    """Read vocab.txt, and return the id of each token.

    As in ``tokenizers``, white space is removed only at the end of each line.

    name: name of the tokeniser's class, for error messages.
    """
    data = files.read(VOCABULARY_NAME)
    path = files.make_path(VOCABULARY_NAME)
    if data is None:
        raise VocabularyError(
            f"{files.directory}: holds neither {TOKENIZER_NAME} nor {VOCABULARY_NAME}, of which a {name} is "
            "read"
        )
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(f"{path}: line {line}: not UTF-8") from None
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise VocabularyError(f"{path}: is empty, expected one token a line")
    return {line.rstrip(): number for number, line in enumerate(lines)}


def _read_vocabulary_and_merges(files: ModelFiles) -> tuple[dict[str, Any], list[str]]:
    """Read the vocabulary from vocab.json and the merges from merges.txt.

    The first line of merges.txt may be a comment with the version.
    """
    vocabulary, data = files.read_object(BPE_VOCABULARY_NAME), files.read(MERGES_NAME)
    if vocabulary is None or data is None:
        raise VocabularyError(
            f"{files.directory}: holds neither {TOKENIZER_NAME} nor {BPE_VOCABULARY_NAME} and {MERGES_NAME}, "
            "of which a byte-level BPE is read"
        )
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(f"{files.make_path(MERGES_NAME)}: line {line}: not UTF-8") from None
    return vocabulary, [
        line.rstrip("\r") for line in lines if line.strip() and not line.startswith("#version")
    ]


def _find_character_map(parsed: Parts | None) -> Parts | None:
    """Return the character map of SentencePiece in a parsed tokenizer.json, or None if it has none.

    This is the only part of the normaliser that XLMRobertaTokenizer uses.
    """
    steps = [] if parsed is None or parsed["normalizer"] is None else [parsed["normalizer"]]
    if steps and steps[0].get("type") == "Sequence" and isinstance(steps[0].get("normalizers"), list):
        steps = steps[0]["normalizers"]
    return next(
        (step for step in steps if isinstance(step, dict) and step.get("type") == "Precompiled"), None
    )


def _make_special_token(token: str, kind: int) -> Parts:
    """Return a special token as an item of a TemplateProcessing.

    kind: segment (token type) of the token.
    """
    return {"SpecialToken": {"id": token, "type_id": kind}}


def _make_sequence(name: str, kind: int) -> Parts:
    """Return a text as an item of a TemplateProcessing.

    name: "A" for the first text of a pair, or "B" for the other.
    kind: segment (token type) of the text.
    """
    return {"Sequence": {"id": name, "type_id": kind}}


def _make_template_tokens(tokens: tuple[str, ...], ids: FindId) -> Parts:
    """Return the table of special tokens for a TemplateProcessing, which contains the id of each token."""
    return {token: {"id": token, "ids": [ids(token)], "tokens": [token]} for token in tokens}
