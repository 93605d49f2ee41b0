"""Test cases from the SQuAD part of the reference kit: settings, made-up logits and digests."""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bertdata.tokens.load import load_tokenizer
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.tasks.data_file import read_file
from trainer.tasks.squad.features import SquadFeature, SquadSettings, make_features
from trainer.tasks.squad.reading import Question, read_squad


class Case(NamedTuple):
    """The input, settings and training flag that are encoded in an oracle's file name."""

    input: str
    settings: SquadSettings
    words: tuple[str, ...]


def parse_case(name: str, dialect: str, *, training: bool = False) -> Case:
    """Return the case for a name such as ``INPUT__s96__d32__q24[__words]``."""
    source, length, stride, query, *words = name.split("__")
    settings = SquadSettings(
        dialect=dialect,
        max_seq_length=int(length[1:]),
        doc_stride=int(stride[1:]),
        max_query_length=int(query[1:]),
        training=training or "training" in words,
        version_2_with_negative="v2" in words and "training" in words,
        lower_case="no-lower-case" not in words,
    )
    return Case(source, settings, tuple(words))


class Made(NamedTuple):
    """The questions and features of a case."""

    questions: list[Question]
    features: list[SquadFeature]
    tokenizer: WordPieceTokenizer
    settings: SquadSettings


@lru_cache(maxsize=4)
def make_case(kit: Path, case: Case) -> Made:
    """Return the questions of the case's input, and their features in the file's order."""
    tokenizer = tokenizer_of(kit, case.settings)
    questions = read_questions(kit, case).questions
    return Made(questions, make_features(questions, tokenizer, case.settings), tokenizer, case.settings)


def read_questions(kit: Path, case: Case) -> Any:
    path = str(kit / "squad" / f"{case.input}.json")
    settings = case.settings
    return read_squad(read_file(path), training=settings.training, negatives=settings.version_2_with_negative)


def tokenizer_of(kit: Path, settings: SquadSettings) -> Any:
    path = str(kit / "vocab" / "bert-base-uncased.txt")
    return load_tokenizer(path, settings.dialect, settings.lower_case)


def flat_entries(nested: Any) -> list[dict[str, Any]]:
    """Convert SQuAD's nested JSON to the flat list that run_qa.py reads.

    Each question has a copy of its context.
    """
    found = []
    for article in nested["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                answers = entry.get("answers", [])
                lists = {key: [one[key] for one in answers] for key in ("text", "answer_start")}
                found.append({**entry, "context": paragraph["context"], "answers": lists})
    return found


@lru_cache(maxsize=1)
def made_up_logits(features: int, length: int, seed: int, ties: bool) -> Any:
    """Return start and end logits of shape (features, length), in float32, by the formula in ORACLES.md."""
    rows = []
    for number in range(features):
        normal = np.random.RandomState(number + seed).standard_normal((2, length))
        rows.append((np.round(2 * normal) / 2 if ties else 4 * normal).astype(np.float32))
    logits = np.stack(rows)
    return logits[:, 0], logits[:, 1]


def line(value: Any) -> str:
    """Return the value in the kit's JSON format, with a newline."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


def md5_of_lines(lines: Iterable[str]) -> str:
    return hashlib.md5("".join(lines).encode()).hexdigest()


def read_oracle(kit: Path, name: str) -> Any:
    return json.loads((kit / "squad" / f"{name}.json").read_text(encoding="utf-8"))
