"""Blocks beside fairseq's own, of the kit's text: all break modes, lengths and both tokenisers."""

import hashlib
import json
from array import array
from collections.abc import Iterable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from bertdata.config.dialects import find_dialect
from bertdata.examples.mlm.blocks import cut_blocks
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.reference import text_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

START, END = 0, 2
TEXTS = {"eval": "results/eval.txt", "part0": "results/part-00000-of-00500"}
WORD_PIECES, BYTE_PAIRS = "W", "B"

Lines = list[list[int]]
"""The ids of each line of a text; a blank line has none."""


@pytest.fixture(scope="session")
def encoders(kit: Path) -> Path:
    folder = kit / "encoders"
    if not folder.is_dir():
        pytest.skip("the kit has no oracles for encoders")
    return folder


@pytest.fixture(scope="session")
def lines(kit: Path, encoders: Path) -> dict[str, Lines]:
    """The ids of the kit's texts by both tokenisers, those that fairseq read."""
    found = {}
    for text, path in TEXTS.items():
        rows = (kit / path).read_text(encoding="utf-8").splitlines()
        found[f"{text}__{WORD_PIECES}"] = _word_pieces(rows, kit / "vocab" / "bert-base-uncased.txt")
        found[f"{text}__{BYTE_PAIRS}"] = _byte_pairs(rows, encoders / "tokenizers" / "bpe-roberta.json")
    return found


def _word_pieces(rows: list[str], path: Path) -> Lines:
    """WordPiece, its ids in RoBERTa's layout: <s> <pad> </s> <unk>, all other words, <mask>."""
    dialect = find_dialect("google")
    vocabulary = parse_vocabulary(path.read_bytes(), path.name, dialect)
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    plain = [word for word in vocabulary.words if word not in special]
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


@pytest.mark.parametrize("name", ["eval__W", "eval__B", "part0__W", "part0__B"])
def test_the_ids_are_those_that_fairseq_read(name, lines, encoders):
    assert md5_of_rows(lines[name]) == oracle(encoders / "ids.json")[name]["md5"]


def test_every_block_is_fairseqs(lines, encoders):
    """With the blank lines, each an end token, and with lines that are too long left whole."""
    cases = oracle(encoders / "fairseq" / "blocks.json")
    for case, wanted in cases.items():
        text, tokens, breaks, length = case.split("__")
        ended = [[*line, END] for line in lines[f"{text}__{tokens}"]]
        stream = [token for line in ended for token in line]
        spans = list(cut_blocks(list(map(len, ended)), breaks, int(length) - 1))
        rows = [[START, *stream[start:end]] for start, end in spans]
        assert (len(rows), sum(map(len, rows))) == (wanted["blocks"], wanted["tokens"]), case
        assert md5_of_rows(rows) == wanted["md5"], case
    assert len(cases) == 36


def as_documents(lines: Lines) -> Documents:
    """The lines as a tokeniser hands them over: a blank line ends a document."""
    sentences, ends, kept = [], [], 0
    for line in [*lines, []]:
        if line:
            sentences.append(line)
        elif len(sentences) > kept:
            kept = len(sentences)
            ends.append(kept)
    return Documents(
        ids=array("H", [token for line in sentences for token in line]),
        sentence_ends=array("I", accumulate(map(len, sentences))),
        document_ends=array("I", ends),
    )


def vocabulary_of(size: int) -> Vocabulary:
    """RoBERTa's layout: [CLS] is 0, [SEP] 2, [UNK] 3, [MASK] the last."""
    return Vocabulary(
        name="roberta",
        md5="",
        words=[f"w{token}" for token in range(size)],
        continues_word=bytes(size),
        replacements=tuple(range(size)),
        cls=START,
        sep=END,
        mask=size - 1,
        unk=3,
    )


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", ["eval__W", "eval__B", "part0__W", "part0__B"])
def test_examples_of_whole_sentences_of_a_document_are_fairseqs_blocks(name, engine, lines, encoders):
    """The objective's own way, through documents: no line of these is too long for 512 ids."""
    wanted = oracle(encoders / "fairseq" / "blocks.json")[f"{name}__complete_doc__512"]
    documents = as_documents(lines[name])
    vocabulary = vocabulary_of(30_522 if name.endswith(WORD_PIECES) else 3_072)
    rows = text_blocks(documents, vocabulary, "complete_doc", 512)
    assert md5_of_rows(rows) == wanted["md5"]
    made = make_blocks(documents, vocabulary, MlmSettings(masks=False), engine)
    ids = [example.ids for example in made.batch(0, len(made)).examples()]
    assert sorted(ids) == sorted(rows)
    assert ids != rows  # examples are shuffled
