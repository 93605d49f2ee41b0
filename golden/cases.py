"""The golden cases: reading them, and making a case's examples as text."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertdata._native import Engine
from bertdata.config.settings import ExampleSettings
from bertdata.examples.objectives import find_objective
from bertdata.records import MadeExamples, Vocabulary
from bertdata.shards.tfrecord import encode_batch
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

GOLDEN = Path(__file__).parent
VOCABULARY = GOLDEN / "vocab.txt"


@dataclass(frozen=True)
class Case:
    """One folder of ``golden/cases``."""

    folder: Path
    inputs: tuple[str, ...]
    settings: Any
    """Those of the case's objective."""

    @property
    def examples_file(self) -> Path:
        return self.folder / "examples.txt"

    @property
    def expected_file(self) -> Path:
        return self.folder / "expected.json"


def load_case(name: str) -> Case:
    """The case of that name."""
    folder = GOLDEN / "cases" / name
    value = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    settings = value["settings"]
    kind = find_objective(settings.get("objective", "bert")).settings_type
    return Case(folder, tuple(value["inputs"]), kind(**settings))


def case_names(objective: str | None = None) -> list[str]:
    """Names of all cases, or of those of one objective, sorted."""
    names = sorted(path.parent.name for path in (GOLDEN / "cases").glob("*/case.json"))
    return [name for name in names if objective in (None, load_case(name).settings.objective)]


def make(case: Case, engine: Engine) -> tuple[MadeExamples, Vocabulary]:
    """The case's examples by one engine, and the vocabulary they were made with."""
    rules = case.settings.rules
    vocabulary = parse_vocabulary(VOCABULARY.read_bytes(), "vocab.txt", rules)
    tokenizer = WordPieceTokenizer(vocabulary, rules, lower_case=case.settings.lower_case, engine=engine)
    documents = tokenizer.encode([(GOLDEN / name).read_bytes() for name in case.inputs], list(case.inputs))
    objective = find_objective(case.settings.objective)
    return objective.make(documents, vocabulary, case.settings, engine=engine), vocabulary


def as_text(examples: MadeExamples, vocabulary: Vocabulary, settings: ExampleSettings) -> str:
    """Return all examples in readable form."""
    words, batch = list(vocabulary.words), examples.batch(0, len(examples))
    describe = find_objective(settings.objective).describe
    return "".join(
        f"example {number}: {describe(example, words, vocabulary.mask, settings.layout)}"
        for number, example in enumerate(batch.examples())
    )


def as_expected(examples: MadeExamples, settings: ExampleSettings, engine: Engine) -> dict[str, Any]:
    """The content of ``expected.json``."""
    content = encode_batch(examples.batch(0, len(examples)), settings.layout, engine)
    return {
        "examples": len(examples),
        "tokens": examples.tokens,
        "masked_tokens": examples.masked,
        "content_bytes": len(content),
        "content_md5": hashlib.md5(content).hexdigest(),
    }
