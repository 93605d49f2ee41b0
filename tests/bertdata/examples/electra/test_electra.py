"""ELECTRA's examples beside those of its own program, of the kit's text."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bertdata.config.dialects import find_dialect
from bertdata.examples.electra.batch import ElectraExample
from bertdata.examples.electra.objective import ELECTRA
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.examples.fields import make_field_values
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

TEXTS = {"eval": "results/eval.txt", "part-00000": "results/part-00000-of-00500"}
CASES = ("eval__s128__seed0", "eval__s512__seed7", "part-00000__s128__seed3")


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
    path = kit / "encoders" / "electra" / "examples.json"
    if not path.is_file():
        pytest.skip("the kit has no oracles for ELECTRA")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def settings_of(case: str) -> ElectraSettings:
    _, length, seed = case.split("__")
    return ElectraSettings(
        max_seq_length=int(length.removeprefix("s")), random_seed=int(seed.removeprefix("seed"))
    )


def md5_of_rows(rows: Iterable[Any]) -> str:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def padded(example: ElectraExample, settings: ElectraSettings) -> list[list[int]]:
    """The program's row: input_ids, input_mask and segment_ids, as its TFRecord has them."""
    fields = ELECTRA.fields("tfrecord", settings.layout)
    found = make_field_values(example, fields, ELECTRA.batch_type, settings.layout)
    return [found["input_ids"], found["input_mask"], found["segment_ids"]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["native", "python"])
def test_every_example_is_the_programs(case, engine, documents, vocabulary, oracles):
    settings, wanted = settings_of(case), oracles[case]
    made = ELECTRA.make(documents[case.split("__")[0]], vocabulary, settings, engine)
    examples = list(made.batch(0, len(made)).examples())
    assert (len(examples), made.tokens) == (wanted["examples"], wanted["tokens"])
    assert md5_of_rows(padded(example, settings) for example in examples) == wanted["md5"]
    one = sum(example.first_length == len(example.ids) for example in examples)
    assert one == wanted["one_segment"]


def test_every_case_of_the_kit_is_tried(oracles):
    assert set(CASES) == set(oracles)
