"""Byte-level BPE of the reference kit: ids of its texts in RoBERTa's and ModernBERT's layouts."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bertdata import _native
from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer
from tests.support.byte_bpe import vocabulary_of

NATIVE = pytest.param("native", marks=pytest.mark.skipif(not _native.available(), reason="no kernels"))
LINES = {"eval": "eval.txt", "part0": "part-00000-of-00500"}


def load(kit: Path, name: str, engine: Any) -> ByteBpeTokenizer:
    parsed = json.loads((kit / "encoders" / "tokenizers" / f"bpe-{name}.json").read_text())
    return ByteBpeTokenizer(parsed, vocabulary_of(parsed), engine=engine)


def rows(kit: Path, text: str) -> list[str]:
    return (kit / "results" / LINES[text]).read_text().removesuffix("\n").split("\n")


def md5(ids: list[list[int]]) -> str:
    lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in ids)
    return hashlib.md5(lines.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        pytest.param("eval", "python", marks=pytest.mark.thorough),
        pytest.param("eval", "native", marks=NATIVE.marks),
        pytest.param("part0", "native", marks=NATIVE.marks),
    ],
)
def test_ids_of_lines_in_roberta_s_layout(kit, text, engine):
    expected = json.loads((kit / "encoders" / "ids.json").read_text())[f"{text}__B"]
    found = list(load(kit, "roberta", engine).encode_each(rows(kit, text)).lists())
    assert (len(found), sum(map(len, found))) == (expected["lines"], expected["ids"])
    assert md5(found) == expected["md5"]


@pytest.mark.parametrize("engine", [NATIVE, pytest.param("python", marks=pytest.mark.thorough)])
def test_ids_of_lines_in_modernbert_s_layout(kit, engine):
    expected = json.loads((kit / "encoders" / "ids.json").read_text())["eval__M"]
    tokenizer = load(kit, "modernbert", engine)
    words = tokenizer.vocabulary.words
    first, last = words.index("[CLS]"), words.index("[SEP]")
    found = [
        [first, *row, last]
        for row in tokenizer.encode_each([row for row in rows(kit, "eval") if row]).lists()
    ]
    assert (len(found), sum(map(len, found))) == (expected["sequences"], expected["tokens"])
    assert md5(found) == expected["md5"]
