"""Run commands, in this process where possible, and read the files that they leave."""

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
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    def assert_one_error(self, status: int, *words: str) -> None:
        """One line on standard error, which holds all the words, and the exit status."""
        assert self.status == status, self.err
        assert len(self.err.splitlines()) == 1, self.err
        assert self.err.startswith("bertdata")
        assert ": error: " in self.err
        for word in words:
            assert word in self.err


class Program:
    """The program within this process."""

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
    """The program as a process of its own."""
    return subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        **{"stderr": subprocess.PIPE, **options},
    )


def finish(process: "subprocess.Popen[str]", seconds: float = 120) -> Outcome:
    """Wait that long for the process's end."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return Outcome(process.returncode, out, err)


def on_a_terminal(*arguments: object, module: str = "bertdata", python: str = sys.executable) -> str:
    """The command's standard error where that is a terminal."""
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
    except OSError:  # how a terminal says that nobody writes to it any more
        pass
    finally:
        os.close(terminal)
    assert finish(process).status == 0
    return seen.decode()


def files_below(directory: Path) -> list[str]:
    """Names of all files below the directory, relative to it, sorted."""
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def dataset_files(*shards: str) -> list[str]:
    """Names of all files of a finished dataset of these shards, sorted."""
    lengths = (f"lengths/{shard}.u16" for shard in shards)
    card = ["README.md"] if any(shard.endswith(".parquet") for shard in shards) else []
    return sorted(["MD5SUMS", "manifest.json", "vocab.txt", *card, *shards, *lengths])


def contents(directory: Path) -> dict[str, bytes]:
    """The bytes of all files below the directory."""
    return {name: (directory / name).read_bytes() for name in files_below(directory)}
