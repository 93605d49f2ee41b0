"""Published commands of other programs, with the values that they train with, from the reference kit."""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.support.paths import find_kit
from trainer.__main__ import main


def commands(*programs: str) -> Iterator[dict[str, Any]]:
    """Yield the kit's commands of these programs. Yields nothing without the kit."""
    if kit := find_kit():
        for command in json.loads((kit / "commands.json").read_text(encoding="utf-8"))["commands"]:
            if command["program"] in programs:
                yield command


def understood(program: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the configuration that this trainer makes of a command line."""
    out = io.StringIO()
    with redirect_stdout(out):
        status = main(["like", program, *arguments, "--print-config"])
    assert status == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def assert_equal(found: dict[str, Any], expected: dict[str, Any], told: Sequence[str] = ()) -> None:
    """Assert that every expected value was found. told: keys whose value the kit only describes in words."""
    assert {name: found.get(name, "absent") for name in expected if name not in told} == {
        name: value for name, value in expected.items() if name not in told
    }


def substituted(words: Sequence[str], files: dict[str, Path | str]) -> list[str]:
    """Return the arguments with the placeholders of the published text replaced by files."""
    found = []
    for word in words:
        for placeholder, path in files.items():
            word = word.replace(placeholder, str(path))
        found.append(word)
    return found


def refusal(program: str, arguments: Sequence[str]) -> str:
    """Return the error message for a command line that the program refuses."""
    err = io.StringIO()
    with redirect_stderr(err):
        status = main(["like", program, *arguments, "--print-config"])
    assert status != 0
    return err.getvalue()


def told(program: str, arguments: Sequence[str]) -> str:
    """Return the summary and the warnings that the program prints for a command line."""
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        assert main(["like", program, *arguments, "--print-config"]) == 0
    return err.getvalue()
