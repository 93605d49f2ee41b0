"""Models' directories in Hugging Face's form, drawn from a seeded generator, and texts to read with them."""

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.soak.tokenizer_variations import (
    added_tokens,
    bert_normalizer,
    byte_bpe,
    known_splitter,
    normalizer,
    post_processor,
    splitter,
    wordpiece,
)

Json = dict[str, Any]

TEXTS = (
    "Er möchte covid19. MÖCHTE Covid19 the cat",
    "Istanbul istanbul İstanbul naïve 東京 e\u0301! é! abq solo",
    "a <mask> b [MASK] c<s>the  cat's 1234 <x>x",
)

CLASSES = {
    "bert": (
        *(
            "BertTokenizer",
            "BertTokenizer",
            "BertTokenizerFast",
            "DistilBertTokenizer",
            "ElectraTokenizerFast",
        ),
        *("BertJapaneseTokenizer", "PreTrainedTokenizerFast", "RobertaTokenizer", None),
    ),
    "roberta": ("RobertaTokenizer", "RobertaTokenizerFast", "BartTokenizer", "PreTrainedTokenizerFast", None),
    "gpt2": ("GPT2Tokenizer", "GPT2TokenizerFast", "TokenizersBackend", None),
    "xlm-roberta": ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast", None),
    "modernbert": ("PreTrainedTokenizerFast", "BertTokenizer", "TokenizersBackend", None),
}
"""Classes of tokeniser that directories of a kind of model name; most of them fit it."""


def write_directory(random: Random, directory: Path) -> str:
    """Write a directory, and return what it is in words."""
    directory.mkdir()
    model_type = random.choice(("bert", "bert", "bert", "roberta", "gpt2", "xlm-roberta", "modernbert"))
    file = _tokenizer_json(model_type, random)
    name = random.choice(CLASSES[model_type])
    settings: Json = {} if name is None else {"tokenizer_class": name}
    settings |= _settings(random)
    files: dict[str, Any] = {}
    if random.random() < 0.9:
        files["config.json"] = {"model_type": model_type} if random.random() < 0.95 else {}
    vocabulary = file["model"]["vocab"]
    if random.random() < 0.75 or isinstance(vocabulary, list):
        files["tokenizer.json"] = file
    words: list[str] | None = None
    if model_type == "bert" and random.random() < 0.7:
        words = sorted(vocabulary, key=vocabulary.__getitem__)
        if random.random() < 0.1:
            words.append(random.choice((" lead", "trail ", "the", "", "new")))
    elif "merges" in file["model"] and random.random() < 0.5:
        files["vocab.json"] = vocabulary
        merges = file["model"]["merges"]
        lines = [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]
        (directory / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{line}\n" for line in lines))
    _add_tokens(files, settings, vocabulary, random)
    if random.random() < 0.95:
        files["tokenizer_config.json"] = settings
    for path, value in files.items():
        (directory / path).write_text(json.dumps(value, ensure_ascii=random.random() < 0.5))
    if words is not None:
        end = random.choice(("\n", "\n", "\n", "\r\n"))
        (directory / "vocab.txt").write_text(end.join(words) + random.choice((end, "")), newline="")

    return f"{name} of {model_type}"


def _tokenizer_json(model_type: str, random: Random) -> Json:
    parts: Json = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    if model_type == "bert":
        model = wordpiece(random)
        steps: tuple[Any, Any] = (bert_normalizer(random), {"type": "BertPreTokenizer"})
    elif model_type == "xlm-roberta":
        words = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁cat", "a", "t", "e", "c", "h", "<mask>"]
        pieces = [[word, 0.0 if word[0] == "<" else -random.random() * 9] for word in words]
        model = {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False}
        steps = (random.choice((None, normalizer(random))), splitter(random))
    else:
        model, steps = byte_bpe(random), (random.choice((None, {"type": "NFC"})), known_splitter(random))
        model["continuing_subword_prefix"] = model["end_of_word_suffix"] = model["dropout"] = None
        if model_type == "modernbert" and random.random() < 0.3:
            steps = (normalizer(random), splitter(random))
    parts |= {"normalizer": steps[0], "pre_tokenizer": steps[1], "post_processor": post_processor(random)}
    parts |= {"decoder": None, "model": model}
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece[0]: number for number, piece in enumerate(vocabulary)}
    if random.random() < 0.7:
        parts["added_tokens"] = added_tokens(random, vocabulary)
    return parts


def _settings(random: Random) -> Json:
    """Keys of tokenizer_config.json, each there now and then."""
    choices: dict[str, tuple[float, tuple[Any, ...]]] = {
        "do_lower_case": (0.6, (True, False, False, "false", None)),
        "strip_accents": (0.4, (True, False, False, None, 0)),
        "tokenize_chinese_chars": (0.3, (True, False, False, 1)),
        "add_prefix_space": (0.3, (True, True, False)),
        "trim_offsets": (0.1, (True, False)),
        "cls_token": (
            0.3,
            ("[CLS]", "<s>", "the", {"content": "<s>", "__type": "AddedToken", "lstrip": True}),
        ),
        "sep_token": (0.2, ("[SEP]", "</s>")),
        "mask_token": (
            0.3,
            ("[MASK]", "<mask>", {"content": "<mask>", "__type": "AddedToken", "lstrip": True}),
        ),
        "unk_token": (0.2, ("[UNK]", "<unk>")),
        "pad_token": (0.2, ("[PAD]", "<pad>", None)),
        "bos_token": (0.1, ("<s>", None, "solo")),
        "extra_special_tokens": (0.1, (["<x>"], [], {}, ["abq", "solo"], {"image_token": "<x>"})),
        "additional_special_tokens": (0.1, (["<x>"], ["covid19"], [])),
        "image_token": (0.05, ("<x>",)),
        "split_special_tokens": (0.05, (True, False)),
        "never_split": (0.1, (None, ["the"])),
        "model_max_length": (0.3, (512,)),
        "auto_map": (0.02, ({"AutoTokenizer": ["made.Made", None]},)),
    }
    found = {}
    for name, (share, values) in choices.items():
        if random.random() < share:
            found[name] = random.choice(values)
    return found


def _add_tokens(files: dict[str, Any], settings: Json, vocabulary: Any, random: Random) -> None:
    """Tokens that files beside the tokenizer.json add."""
    if isinstance(vocabulary, list):
        vocabulary = {piece[0]: number for number, piece in enumerate(vocabulary)}
    tokens = added_tokens(random, vocabulary)
    if random.random() < 0.4:
        decoder = {}
        for token in tokens:
            decoder[str(token["id"])] = {key: item for key, item in token.items() if key != "id"}
        settings["added_tokens_decoder"] = decoder
    if random.random() < 0.3:
        files["added_tokens.json"] = {token["content"]: token["id"] for token in tokens}
    if random.random() < 0.3:
        names = ("cls_token", "sep_token", "mask_token", "pad_token", "unk_token")
        special = {name: f"[{name[:-6].upper()}]" for name in names if random.random() < 0.6}
        if random.random() < 0.3:
            flags = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
            special["mask_token"] = {"content": "<mask>", **flags, "lstrip": True}  # type: ignore[assignment]
        files["special_tokens_map.json"] = special
