"""A vocabulary of WordPiece as a tokenizer.json of the tokenizers library."""

import json
from typing import Any

from bertdata.records import Vocabulary
from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.load import vocabulary_of

_TYPES = {"A": 0, "B": 1}
"""The type of a text's tokens in a template, by its name there."""

_LONGEST_WORD = 200
"""Characters of the longest word that Google's program cuts into pieces."""


def wordpiece_json(file: VocabularyFile) -> bytes:
    """Return the tokenizer.json of the file's words, casing and special tokens."""
    vocabulary = vocabulary_of(file)
    roles = ("pad", "unk", "cls", "sep", "mask")
    special = {vocabulary.words[number]: number for number in map(vocabulary.role, roles)}
    rules = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, **rules, "special": True} for token, number in special.items()
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": False if file.keep_accents else None,
            "lowercase": file.lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": bert_template(vocabulary, vocabulary.role("cls"), vocabulary.role("sep")),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": vocabulary.words[vocabulary.role("unk")],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": {word: number for number, word in enumerate(vocabulary.words)},
        },
    }
    return json.dumps(whole, ensure_ascii=False, indent=2).encode() + b"\n"


def bert_template(vocabulary: Vocabulary, cls: int, sep: int) -> dict[str, Any]:
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
