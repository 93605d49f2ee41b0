"""Converts a WordPiece vocabulary file to a tokenizer.json."""

import json

from bertdata.tokens.files import VocabularyFile
from bertdata.tokens.load import vocabulary_of
from bertdata.tokens.templates import make_post_processor, make_template

_LONGEST_WORD = 200
"""Longest word in characters that Google's BERT program splits into pieces. A longer word becomes [UNK]."""


def convert_wordpiece(file: VocabularyFile) -> bytes:
    """Convert a WordPiece vocabulary file to a tokenizer.json, and return its content.

    It has the same tokens and ids, the same casing, and the same special tokens.
    """
    vocabulary = vocabulary_of(file)
    roles = ("pad", "unk", "cls", "sep", "mask")
    template = make_template(vocabulary.role("cls"), vocabulary.role("sep"), 1)
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
        "post_processor": make_post_processor(template, vocabulary, None),
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
