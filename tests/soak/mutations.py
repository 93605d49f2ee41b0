"""Tests that would notice: small random changes of the code, each run against the tests near it.

    make mutations COUNT=300 SEED=56
    python -m tests.soak.mutations --count 300 --seed 56 [--rooms examples shards ...] [--minutes 60]

The changes are made by the operators of cosmic-ray (``tests.soak.code_changes``), in the rooms that decide
bytes and training. The tests of each room run once under coverage, which says which tests run which line
(``tests.soak.covering_tests``). Then each change is written into a copy of the repository, and the tests that
run its line are run there, the quickest first, until one fails. A change that no test notices survives, and
is printed. Everything is kept in ``.soak/mutations``, so that the same command goes on where it was stopped.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.soak.code_changes import CodeChange, draw_changes
from tests.soak.covering_tests import CoveringTests, read_covering_tests, record_covering_tests
from tests.soak.forked_pytest import preload_packages, run_chosen_tests, run_in_fork
from tests.support.paths import ROOT

KEPT = ROOT / ".soak" / "mutations"
MARKS = "not browser and not gpu and not horovod"
QUICK = f"{MARKS} and not thorough"
MOST_SECONDS = 60.0
"""Tests of one change that take longer together, without a change, are left out; the quickest stay."""
PATIENCE = 5.0
"""Factor for the time that the tests may take with a change, before it counts as noticed."""
START_SECONDS = 180.0
"""Time for the imports on a busy machine, in addition."""
NOTICED, HANGS, SURVIVED, NOT_RUN = "noticed", "noticed: hangs", "survived", "survived: no test runs it"
NOT_TRIED = "not tried"
"""The room's tests were not all recorded, and none of those that were runs the line."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """Some source files and the tests near them, as paths relative to the root."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "examples": Room(
        sources=("bertdata/examples",),
        tests=("tests/bertdata/examples", "tests/golden"),
    ),
    "shards": Room(sources=("bertdata/shards",), tests=("tests/bertdata/shards", "tests/bertdata/dataset")),
    "tokens": Room(sources=("bertdata/tokens",), tests=("tests/bertdata/tokens",)),
    "build": Room(sources=("bertdata/build",), tests=("tests/bertdata/build", "tests/bertdata/steps")),
    "beam": Room(
        sources=("beam_pipelines/stages", "beam_pipelines/transport"), tests=("tests/beam_pipelines",)
    ),
    "update": Room(sources=("trainer/update",), tests=("tests/trainer/update", "tests/trainer/devices")),
    "data": Room(sources=("trainer/data",), tests=("tests/trainer/data",)),
    "checkpoints": Room(sources=("trainer/checkpoints",), tests=("tests/trainer/checkpoints",)),
}
"""The rooms that decide bytes and training."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the tests said about a change, and how many of them were to run."""

    room: str
    change: str
    operator: str
    outcome: str
    tests: int
    seconds: float


def copy_repository(copy: Path) -> None:
    """Copy the tracked files and the compiled kernels into a directory, which is emptied before."""
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    kernels = [str(path.relative_to(ROOT)) for path in ROOT.glob("bertdata/_native/*.so")]
    for name in [*listed.stdout.splitlines(), *kernels]:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    (copy / ".venv").symlink_to(ROOT / ".venv")


def list_sources(copy: Path, room: Room) -> list[str]:
    """Return the source files of a room."""
    found = [path for source in room.sources for path in (copy / source).rglob("*.py")]
    return sorted(str(path.relative_to(copy)) for path in found)


def find_covering_tests(copy: Path, name: str, room: Room, marks: str, minutes: float) -> CoveringTests:
    """Run the room's tests once under coverage, or read what an earlier run has kept."""
    kind = "all" if marks == MARKS else "quick"
    result = KEPT / f"{name}-{kind}.json"
    if not result.exists():
        log = KEPT / f"{name}-{kind}.log"
        record_covering_tests(copy, list_sources(copy, room), room.tests, marks, result, log, 60 * minutes)
    return read_covering_tests(result)


def choose_tests(covering: CoveringTests, copy: Path, change: CodeChange) -> list[list[str]]:
    """Return the tests to run for a change, in groups, of which the first is the cheapest.

    Most of the time of a group is the import of its test files. So the first group is the quickest tests of
    the file with the most tests that run the changed line.
    """
    chosen, total = list[str](), 0.0
    for name in covering.find(copy, change.file, change.line):
        total += covering.seconds[name]
        if chosen and total > MOST_SECONDS:
            break
        chosen.append(name)
    if not chosen:
        return []
    file = Counter(name.partition("::")[0] for name in chosen).most_common(1)[0][0]
    first = [name for name in chosen if name.startswith(f"{file}::")]
    others = [name for name in chosen if name not in first]
    return [first, others] if others else [first]


def try_change(copy: Path, name: str, change: CodeChange, covering: CoveringTests, clock: int) -> Verdict:
    """Write the change into the copy, run the tests, and take it back.

    clock: seconds since 1970 to give the file as its time of modification. Python takes a compiled file for
        current if size and time are those of the source, so every change needs a time of its own.
    """
    path = copy / change.file
    before, times = path.read_bytes(), path.stat()
    groups = choose_tests(covering, copy, change)
    start = time.monotonic()
    try:
        path.write_text(change.text, encoding="utf-8")
        os.utime(path, (clock, clock))
        status: int | None = 5
        for group in groups:
            usual = sum(covering.seconds[name] for name in group)
            work, limit = partial(run_chosen_tests, group), PATIENCE * usual + START_SECONDS
            status = run_in_fork(work, copy, KEPT / "change.log", limit)
            if status != 0:
                break
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    not_run = NOT_RUN if covering.is_complete else NOT_TRIED
    outcome = {None: HANGS, 0: SURVIVED, 5: not_run}.get(status, NOTICED)
    return Verdict(
        room=name,
        change=str(change),
        operator=change.operator,
        outcome=outcome,
        tests=sum(map(len, groups)),
        seconds=round(time.monotonic() - start, 1),
    )


def try_room(
    copy: Path, name: str, count: int, seed: int, marks: str, deadline: float, results: Path, minutes: float
) -> None:
    """Try ``count`` changes of a room, and append the verdicts to the results. Known ones are skipped."""
    known = {verdict.change for verdict in read_results(results)}
    covering = find_covering_tests(copy, name, ROOMS[name], marks, minutes)
    drawn = draw_changes(copy, list_sources(copy, ROOMS[name]), f"{seed} {name}")
    for number, change in enumerate(drawn):
        if number >= count or time.monotonic() > deadline:
            return
        if str(change) in known:
            continue
        clock = 1_000_000_000 + int(time.monotonic() * 10)
        verdict = try_change(copy, name, change, covering, clock)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(verdict.__dict__) + "\n")
        if verdict.outcome.startswith(SURVIVED):
            print(f"{verdict.outcome} ({verdict.tests} tests): {verdict.change}", flush=True)


def read_results(results: Path) -> list[Verdict]:
    """Return the verdicts of earlier runs."""
    if not results.exists():
        return []
    return [Verdict(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]


def format_table(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the lines of a table: for each room the numbers of changes by outcome."""
    counts = Counter((verdict.room, verdict.outcome) for verdict in verdicts)
    outcomes = (NOTICED, HANGS, SURVIVED, NOT_RUN, NOT_TRIED)
    lines = [f"| room | changes | {' | '.join(outcomes)} |", "|---|---|" + "---|" * len(outcomes)]
    for room in dict.fromkeys(room for room, _ in counts):
        row = [counts[room, outcome] for outcome in outcomes]
        lines.append(f"| {room} | {sum(row)} | {' | '.join(map(str, row))} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak.mutations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=300, help="changes in all rooms (default: 300)")
    parser.add_argument("--seed", type=int, default=56)
    parser.add_argument("--rooms", nargs="+", choices=list(ROOMS), default=list(ROOMS))
    parser.add_argument("--minutes", type=float, default=600, help="begin no change after this time")
    parser.add_argument(
        "--recording-minutes", type=float, default=60, help="for a room's tests under coverage (default: 60)"
    )
    parser.add_argument("--thorough", action="store_true", help="run the thorough tests too")
    flags = parser.parse_args(arguments)
    preload_packages()
    KEPT.mkdir(parents=True, exist_ok=True)
    copy, results = KEPT / "copy", KEPT / f"results-{flags.seed}.jsonl"
    copy_repository(copy)
    deadline = time.monotonic() + 60 * flags.minutes
    each = -(-flags.count // len(flags.rooms))
    for name in flags.rooms:
        marks = MARKS if flags.thorough else QUICK
        try_room(copy, name, each, flags.seed, marks, deadline, results, flags.recording_minutes)
    verdicts = read_results(results)
    print(*format_table(verdicts), sep="\n")
    return 1 if any(verdict.outcome.startswith(SURVIVED) for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
