"""Model directories as transformers 4 saves them, in which several files describe one tokeniser."""

import json
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = [*SPECIAL, "er", "möchte", "mochte", "das", ".", *"abcdefghijklmnopqrstuvwxyzöäü0123456789"]
WORDS += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
IDS = {word: number for number, word in enumerate(WORDS)}
COVID = len(WORDS)
"""The id of the added token of german_directory."""


def flags(content: str, **changes: bool) -> dict[str, Any]:
    """Return a token with its flags, in the form of ``added_tokens_decoder``."""
    plain = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized", "special"), False)
    return {"content": content, **plain, **changes}


def bert_json(
    vocabulary: dict[str, int],
    added: dict[int, dict[str, Any]],
    *,
    lower_case: bool = True,
    strip_accents: bool | None = None,
    chinese: bool = True,
) -> dict[str, Any]:
    """Return the contents of the tokenizer.json that BERT's fast tokeniser saves."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, **token} for number, token in added.items()],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": chinese,
            "strip_accents": strip_accents,
            "lowercase": lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }


def german_directory(path: Path, **settings: Any) -> Path:
    """Write the directory of an uncased BERT that keeps accents and has the added token covid19.

    Returns its path.

    settings: further keys of tokenizer_config.json.
    """
    path.mkdir(exist_ok=True)
    added = {number: flags(token, special=True) for number, token in enumerate(SPECIAL)}
    added[COVID] = flags("covid19", normalized=True)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": False,
        "tokenize_chinese_chars": True,
        "added_tokens_decoder": {str(number): token for number, token in added.items()},
        **{f"{token[1:-1].lower()}_token": token for token in SPECIAL},
    }
    write_json(path / "tokenizer_config.json", config | settings)
    write_json(path / "tokenizer.json", bert_json(IDS, added, strip_accents=False))
    write_json(path / "added_tokens.json", {"covid19": COVID})
    write_json(path / "config.json", {"model_type": "bert"})
    (path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
