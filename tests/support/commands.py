"""Helpers that run commands, in this process where possible, and read the files that the commands write."""

import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bertdata.cli.main import main
from tests.support.paths import ROOT

SMALL = ("--max-seq-length=64", "--max-predictions-per-seq=10", "--dupe-factor=1", "--workers=1")


@dataclass(frozen=True)
class Outcome:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str

    def assert_one_error(self, status: int, *words: str) -> None:
        """Assert this exit status and a single line on standard error that contains all the words."""
        assert self.status == status, self.err
        assert len(self.err.splitlines()) == 1, self.err
        assert self.err.startswith("bertdata")
        assert ": error: " in self.err
        for word in words:
            assert word in self.err


class Program:
    """A callable that runs ``bertdata`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._capsys.readouterr()
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as stop:  # argparse: help, or wrong usage
            status = int(stop.code or 0)
        printed = self._capsys.readouterr()
        return Outcome(status, printed.out, printed.err)


def start(
    *arguments: object,
    module: str = "bertdata",
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
    **options: Any,
) -> "subprocess.Popen[str]":
    """Start the program in a new process."""
    return subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        **{"stderr": subprocess.PIPE, **options},
    )


def finish(process: "subprocess.Popen[str]", seconds: float = 120) -> Outcome:
    """Wait for the end of the process, at most this many seconds."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return Outcome(process.returncode, out, err)


def on_a_terminal(*arguments: object, module: str = "bertdata", python: str = sys.executable) -> str:
    """Run the command with a terminal as standard error. Returns what it prints there."""
    terminal, end = pty.openpty()
    process = start(
        *arguments,
        module=module,
        python=python,
        stderr=end,
        environment={"TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(end)
    seen = b""
    try:
        while block := os.read(terminal, 4096):
            seen += block
    except OSError:  # the terminal was closed by all its writers
        pass
    finally:
        os.close(terminal)
    assert finish(process).status == 0
    return seen.decode()


def files_below(directory: Path) -> list[str]:
    """Return the sorted names of all files below the directory, relative to it."""
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def dataset_files(*shards: str) -> list[str]:
    """Return the sorted names of all files of a finished dataset with these shards."""
    lengths = (f"lengths/{shard}.u16" for shard in shards)
    card = ["README.md"] if any(shard.endswith(".parquet") for shard in shards) else []
    return sorted(["MD5SUMS", "manifest.json", "vocab.txt", *card, *shards, *lengths])


def contents(directory: Path) -> dict[str, bytes]:
    """Return the bytes of every file below the directory, by relative name."""
    return {name: (directory / name).read_bytes() for name in files_below(directory)}
