"""Runs the console blocks of a documentation page in order, and compares their output with the page.

A block fenced as ``console`` contains commands, each after ``$ ``, and below each command its output,
including standard error. A line that ends with a backslash continues on the next line. A line with only
``...`` stands for any number of lines. A comment before a fenced block changes what is done with it:

``<!-- not run: REASON -->``        the block is not run
``<!-- file: NAME -->``             the block's text is written to this file
``<!-- status: N -->``              the block's last command must end with this exit status instead of 0
``<!-- within N %: REASON -->``     numbers with a decimal point may differ by N percent, and those below 1
                                    by N hundredths

``<!-- not run below: REASON -->``  alone on a line: no block after it is run

A fenced block that is neither ``console`` nor marked is an error of the page. Seconds, speeds and the path of
the temporary directory are replaced by the same text on both sides before the comparison. Everything else
must be equal.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"\d[\d,]*\.\d+(?:e[+-]\d+)?")
ANY_LINES = "..."
SECONDS = 900
"""Time limit of a command, long enough for a busy machine."""

SAME = [
    (re.compile(r"  waiting for data \d+%"), ""),
    (re.compile(r"\d[\d,.]* (\w+)/s\b"), r"N \1/s"),
    (re.compile(r"\b(?:\d+ (?:h|min) )?\d[\d,.]* (?:h|min|s|ms)\b"), "N s"),
]
"""Patterns of text that differs from run to run: speeds, durations, and waits on a busy machine."""
BUSY = re.compile(r"trainer: warning: updates take [\d.]+ times as long")
"""A line that the trainer prints only on a busy machine."""


class PageFault(AssertionError):
    """Raised when a command's output differs from what the page shows."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and the output that the page shows for it."""

    line: int
    words: str
    printed: list[str]
    status: int
    tolerance: float


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line, the comment before it, and its text."""

    line: int
    mark: str
    kind: str
    text: str

    def given(self, name: str) -> str | None:
        """Return the value of this mark in the comment before the block, or None."""
        found = re.fullmatch(rf"{name} ?(.*)", self.mark)
        return found[1].lstrip(": ") if found else None


@dataclass
class ConsolePage:
    """A documentation page whose commands are run in a directory, with extra environment variables."""

    path: Path
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self) -> int:
        """Run all blocks and return the number of commands. PageFault if an output differs."""
        count = 0
        for block in blocks(self.path.read_text(encoding="utf-8")):
            if block.given("not run"):
                continue
            if name := block.given("file"):
                place = self.directory / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(block.text, encoding="utf-8")
                continue
            if block.kind != "console":
                raise PageFault(f"{self.path}:{block.line}: the block is neither console nor marked")
            for command in commands(block):
                self._compare(command)
                count += 1
        return count

    def _compare(self, command: Command) -> None:
        place = f"{self.path}:{command.line}: $ {command.words}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.words],
            cwd=self.directory,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        printed = done.stdout.replace(str(self.directory), "DIR").splitlines()
        printed = [line for line in printed if not BUSY.match(line)]
        if done.returncode != command.status:
            raise PageFault("\n".join([f"{place}\nexit status {done.returncode}", *printed]))
        if not matches(command.printed, printed, command.tolerance):
            shown = "\n".join(command.printed)
            raise PageFault(f"{place}\nthe page shows\n{shown}\nthe command prints\n" + "\n".join(printed))

    def _variables(self) -> dict[str, str]:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plain = {
            "PATH": programs,
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONWARNINGS": "ignore",
        }
        return {**os.environ, **plain, **self.environment}


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in FENCE.finditer(text.partition("\n<!-- not run below: ")[0]):
        line = text.count("\n", 0, found.start("kind")) + 1
        yield Block(line, found["mark"] or "", found["kind"], found["text"])


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block."""
    status, within = int(block.given("status") or 0), block.given("within")
    tolerance = float(within.partition(" %")[0]) / 100 if within else 0.0
    starts = [start.start() for start in re.finditer(r"^\$ ", block.text, re.MULTILINE)]
    if not starts or starts[0]:
        raise PageFault(f"line {block.line}: a console block begins with '$ '")
    for start, end in zip(starts, [*starts[1:], len(block.text)], strict=True):
        words, printed = _divided(block.text[start + 2 : end])
        line = block.line + 1 + block.text.count("\n", 0, start)
        yield Command(line, words, printed, status if end == len(block.text) else 0, tolerance)


def _divided(text: str) -> tuple[str, list[str]]:
    lines = text.splitlines()
    count = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
    return "\n".join(lines[:count]), [line for line in lines[count:] if line]


def matches(shown: list[str], printed: list[str], tolerance: float = 0.0) -> bool:
    """Return True if the printed lines equal the lines on the page.

    Empty lines are ignored, and ``...`` matches any lines.
    """
    printed = [line.rstrip() for line in printed if line.strip()]
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line == ANY_LINES:
            pieces.append([])
        else:
            pieces[-1].append(line)
    first, *others = pieces
    if not others:
        return _equal(first, printed, tolerance)
    if not _equal(first, printed[: len(first)], tolerance):
        return False
    place, last = len(first), others.pop()
    for piece in others:
        found = [
            i for i in range(place, len(printed)) if _equal(piece, printed[i : i + len(piece)], tolerance)
        ]
        if not found:
            return False
        place = found[0] + len(piece)
    end = max(place, len(printed) - len(last))
    return _equal(last, printed[end:], tolerance)


def _equal(shown: list[str], printed: list[str], tolerance: float) -> bool:
    return all(
        one is not None and other is not None and _same(one, other, tolerance)
        for one, other in zip_longest(shown, printed)
    )


def _same(shown: str, printed: str, tolerance: float) -> bool:
    for pattern, stands_for in SAME:
        shown, printed = pattern.sub(stands_for, shown), pattern.sub(stands_for, printed)
    if not tolerance:
        return shown.rstrip() == printed
    if NUMBER.sub("N", shown) != NUMBER.sub("N", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    numbers = [(float(one.replace(",", "")), float(other.replace(",", ""))) for one, other in pairs]
    return all(abs(one - other) <= tolerance * max(1, abs(one)) for one, other in numbers)
