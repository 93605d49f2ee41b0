"""Run the console blocks of a page in their order and compare what they print with what the page shows.

A block fenced as ``console`` holds commands, each behind ``$ `` (a line that ends with a backslash goes on in
the next one), and below each all that it prints, standard error included. ``...`` alone on a line stands for
any lines, or none. A comment in front of a fenced block changes its meaning:

``<!-- not run: REASON -->``        it is only read
``<!-- file: NAME -->``             its text becomes that file
``<!-- status: N -->``              its last command ends with this exit status in place of 0
``<!-- within N %: REASON -->``     numbers with a decimal point may differ by N percent, those below 1
                                    by N hundredths

``<!-- not run below: REASON -->``  on a line of its own: nor is any block behind it

A fenced block that is neither ``console`` nor marked is a fault of the page. Seconds, speeds and the path of
the temporary directory are made equal on both sides before they are compared, and nothing else.
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
"""A command may take this long on a busy machine."""

SAME = [
    (re.compile(r"\d[\d,.]* (\w+)/s\b"), r"N \1/s"),
    (re.compile(r"\b(?:\d+ (?:h|min) )?\d[\d,.]* (?:h|min|s|ms)\b"), "N s"),
]
"""What differs from run to run: speeds and durations."""


class PageFault(AssertionError):
    """A page that does not show what its commands print."""


@dataclass(frozen=True)
class Command:
    """A command of a page, and what it prints there."""

    line: int
    words: str
    printed: list[str]
    status: int
    tolerance: float


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line's number, the mark before it, and its text."""

    line: int
    mark: str
    kind: str
    text: str

    def given(self, name: str) -> str | None:
        """The value of this mark, if the block has it."""
        found = re.fullmatch(rf"{name} ?(.*)", self.mark)
        return found[1].lstrip(": ") if found else None


@dataclass
class ConsolePage:
    """A page, run in a directory with these variables added to the environment."""

    path: Path
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self) -> int:
        """Run all blocks and return the number of commands; PageFault where one prints other lines."""
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
    """The fenced blocks of a page."""
    for found in FENCE.finditer(text.partition("\n<!-- not run below: ")[0]):
        line = text.count("\n", 0, found.start("kind")) + 1
        yield Block(line, found["mark"] or "", found["kind"], found["text"])


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
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
    """Whether the printed lines, without empty ones, are those of the page; ``...`` stands for any lines."""
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
