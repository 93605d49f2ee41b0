"""Masked spans beside SpanBERT's own program, of the kit's text: blocks, sources, labels and pair targets."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.config.dialects import find_dialect
from bertdata.examples.random_stream import NumpyStream
from bertdata.examples.span.batch import SpanExample
from bertdata.examples.span.blocks import cut_text_into_blocks
from bertdata.examples.span.make import make_spans
from bertdata.examples.span.settings import SpanSettings
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

TEXTS = {"eval": "results/eval.txt", "part-00000": "results/part-00000-of-00500"}
OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "word_piece_internal": {"replacement": "word_piece", "endpoints": "internal", "geometric_p": 0.3}
}
"""Settings of the case with other ones than the program's defaults, by the end of its name."""
TARGETS = {"word_piece_internal": 20}
"""The most targets of a span in that case; 15 elsewhere."""
CASES = (
    "eval__128__seed1",
    "eval__512__seed2",
    "part-00000__512__seed1",
    "eval__128__seed1__word_piece_internal",
)


@pytest.fixture(scope="session")
def vocabulary(kit: Path) -> Vocabulary:
    path = kit / "vocab" / "bert-base-uncased.txt"
    return parse_vocabulary(path.read_bytes(), path.name, find_dialect("google"))


@pytest.fixture(scope="session")
def documents(kit: Path, vocabulary: Vocabulary) -> dict[str, Documents]:
    tokenizer = WordPieceTokenizer(vocabulary, find_dialect("google"), lower_case=True)
    return {name: tokenizer.encode([(kit / path).read_bytes()], [name]) for name, path in TEXTS.items()}


@pytest.fixture(scope="session")
def oracles(kit: Path) -> dict[str, Any]:
    path = kit / "encoders" / "spanbert" / "examples.json"
    if not path.is_file():
        pytest.skip("the kit has no oracles for SpanBERT")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def md5_of_rows(rows: Iterable[Any]) -> str:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def labels_of(example: SpanExample) -> list[int]:
    """The original id at each masked position, 0 elsewhere."""
    row = [0] * len(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        row[position] = label
    return row


def pairs_of(example: SpanExample, most: int) -> list[list[int]]:
    """The program's rows: both boundaries, and the targets between them, padded with 0; one of 0 for none."""
    labels, rows = dict(zip(example.positions, example.labels, strict=True)), []
    for left, right in zip(example.left_boundaries, example.right_boundaries, strict=True):
        targets = [labels[place] for place in range(left, right + 1) if place in labels][:most]
        rows.append([left, right, *targets, *[0] * (most - len(targets))])
    return rows or [[0] * (most + 2)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["native", "python"])
def test_every_example_is_spanberts(case, engine, documents, vocabulary, oracles):
    text, length, seed, *more = case.split("__")
    wanted, own = oracles[case], more[0] if more else ""
    settings = SpanSettings(
        as_original=True,
        max_seq_length=int(length),
        random_seed=int(seed.removeprefix("seed")),
        **OWN_SETTINGS.get(own, {}),
    )
    made = make_spans(documents[text], vocabulary, settings, engine)
    examples = list(made.batch(0, len(made)).examples())
    assert (len(examples), made.tokens, made.masked) == (
        wanted["blocks"],
        wanted["tokens"],
        wanted["targets"],
    )
    assert md5_of_rows(example.ids for example in examples) == wanted["source_md5"]
    assert md5_of_rows(map(labels_of, examples)) == wanted["lm_target_md5"]
    pairs = [pairs_of(example, TARGETS.get(own, 15)) for example in examples]
    assert sum(map(len, pairs)) == wanted["pairs"]
    assert md5_of_rows(pairs) == wanted["pair_targets_md5"]


def test_every_case_of_the_kit_is_tried(oracles):
    assert set(CASES) == set(oracles)


@pytest.mark.parametrize("case", CASES)
def test_every_block_is_spanberts(case, documents, oracles):
    text, length = case.split("__")[:2]
    blocks = cut_text_into_blocks(documents[text], int(length) - 2, as_original=True)
    assert md5_of_rows(map(list, blocks)) == oracles[case]["blocks_md5"]


@pytest.mark.parametrize("seed", [0, 1, 12345, (1 << 32) - 1])
def test_the_stream_is_numpys(seed):
    ours, theirs = NumpyStream(seed), np.random.RandomState(seed)
    for limit in (1, 2, 3, 10, 33_701, 1 << 16, (1 << 16) + 1, 1 << 31, (1 << 32) - 5):
        assert [ours.random() for _ in range(400)] == theirs.random_sample(400).tolist()
        assert [ours.below(limit) for _ in range(5)] == [int(theirs.choice(limit)) for _ in range(5)]
