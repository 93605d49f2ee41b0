"""Token ids that the encoders' original programs make of the reference kit's texts, and digests of rows."""

import hashlib
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bertdata.config.dialects import find_dialect
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

START, END = 0, 2
TEXTS = {"eval": "results/eval.txt", "part0": "results/part-00000-of-00500"}
WORD_PIECES, BYTE_PAIRS = "W", "B"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

Lines = list[list[int]]
"""The ids of each line of a text; a blank line has none."""


def text_lines(kit: Path, text: str, tokens: str) -> Lines:
    """Return the ids of each line of a text. tokens: W for WordPiece, B for byte-level BPE."""
    rows = (kit / TEXTS[text]).read_text(encoding="utf-8").splitlines()
    if tokens == WORD_PIECES:
        return _word_pieces(rows, kit / "vocab" / "bert-base-uncased.txt")
    return _byte_pairs(rows, byte_pair_file(kit))


def byte_pair_file(kit: Path) -> Path:
    return kit / "encoders" / "tokenizers" / "bpe-roberta.json"


def dictionary_words(kit: Path, tokens: str) -> list[str]:
    """Return the vocabulary of tokeniser W or B in the order of its ids."""
    if tokens == BYTE_PAIRS:
        parsed = json.loads(byte_pair_file(kit).read_text(encoding="utf-8"))
        ids = parsed["model"]["vocab"] | {item["content"]: item["id"] for item in parsed["added_tokens"]}
        return sorted(ids, key=lambda word: ids[word])
    lines = (kit / "vocab" / "bert-base-uncased.txt").read_text(encoding="utf-8").splitlines()
    plain = [line for line in lines if line not in _SPECIAL]
    return ["<s>", "<pad>", "</s>", "<unk>", *plain, "<mask>"]


def _word_pieces(rows: list[str], path: Path) -> Lines:
    """Tokenise the lines with WordPiece.

    The ids have RoBERTa's order: <s> <pad> </s> <unk>, words, <mask>.
    """
    dialect = find_dialect("google")
    vocabulary = parse_vocabulary(path.read_bytes(), path.name, dialect)
    plain = [word for word in vocabulary.words if word not in _SPECIAL]
    number = {word: 4 + place for place, word in enumerate(plain)} | {"[UNK]": 3}
    tokens = WordPieceTokenizer(vocabulary, dialect, lower_case=True).encode_each(rows)
    ids = [number[vocabulary.words[token]] for token in tokens.ids]
    return [ids[start:end] for start, end in pairwise([0, *tokens.ends])]


def _byte_pairs(rows: list[str], path: Path) -> Lines:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return [found.ids for found in tokenizer.encode_batch(rows, add_special_tokens=False)]


def md5_of_rows(rows: Iterable[list[int]]) -> str:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def oracle(kit_file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kit_file.read_text())
    return found
