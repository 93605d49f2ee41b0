"""A chain from the golden dump to a small dataset, made by the commands, and rebuilds within this process."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertdata.cli.main import main
from tests.support.commands import SMALL
from tests.support.paths import DUMP, GOLDEN

CORPUS = GOLDEN / "corpus"


def run_commands(*commands: Sequence[object]) -> None:
    """Run commands of ``bertdata`` in this process."""
    for words in commands:
        assert main(list(map(str, words))) == 0, words


def make_chain(place: Path, *, trained: bool = True) -> None:
    """Make ``articles``, ``parts``, ``vocab.txt`` and ``shards`` below a place.

    trained: whether the vocabulary is trained, on the parts and the sample corpus. Otherwise it is golden's.
    """
    vocabulary = place / "vocab.txt" if trained else GOLDEN / "vocab.txt"
    run_commands(
        ("extract", DUMP, "--output", place / "articles", "--workers=1", "--extractor=2.75"),
        (
            *("segment", place / "articles", "--output", place / "parts", "--eval-articles=60"),
            *("--block-size=1", "--workers=1"),
        ),
        *(
            [("train-vocab", place / "parts", CORPUS / "part-*", "--output", vocabulary, "--size=3000")]
            if trained
            else []
        ),
        ("create", place / "parts", "--output", place / "shards", "--vocab", vocabulary, *SMALL),
    )


def compute_md5(path: Path) -> str:
    """Return the md5 of a file, by hashlib alone."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def edit_json(path: Path, change: Mapping[str, Any]) -> None:
    """Change fields of a JSON file, written as bertdata writes manifests. A key may be a path, as a/0/b.

    The manifest of a vocabulary gets the md5 of its changed fields, as a forger would write it.
    """
    value = json.loads(path.read_text(encoding="utf-8"))
    for name, new in change.items():
        *parents, last = name.split("/")
        inner = value
        for one in parents:
            inner = inner[int(one) if isinstance(inner, list) else one]
        inner[int(last) if isinstance(inner, list) else last] = new
    if value.get("kind") == "vocabulary" and value.pop("md5", None):
        value["md5"] = hashlib.md5(_dump_json(value).encode()).hexdigest()
    path.write_text(_dump_json(value), encoding="utf-8")


def _dump_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def run_in_process(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Stand in for ``bertdata.steps.rebuild.run_process``: run a command in this process."""
    arguments = list(words[words.index("-m") + 1 :])
    if arguments[0] == "bertdata":
        return main(arguments[1:])
    from trainer.__main__ import main as train

    return train(arguments[1:]) or 0
