"""Accidents of a run: power cuts, kills, a full or read-only disk, changed inputs, two runs, a wrong clock.

Each function lets one accident happen to a command of ``tests.soak.writing_commands`` and runs the command
again. It returns what was wrong, in words: nothing, if the output is that of an undisturbed run.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.soak.disk_events import VARIABLE
from tests.soak.killed_steps import NO_SPACE, environment
from tests.soak.power_loss import Flushed, lose_power
from tests.soak.writing_commands import LIMIT_SECONDS, WritingCommand, describe_status

YEARS = 10 * 365 * 86_400
SMALL_DISK = """
place=$1 size=$2 result=$3; shift 3
mount -t tmpfs -o size=$size tmpfs "$place" || exit 77
"$@" 2>"$result/err"; echo $? >"$result/status"
find "$place" -name '*.tmp' >"$result/left"
mount -o remount,size=1g "$place" || exit 77
"$@" 2>"$result/err2" || exit 1
cp -a "$place" "$result/made"
"""
READ_ONLY_DISK = """
place=$1 result=$2; shift 2
mount -t tmpfs -o ro tmpfs "$place" || exit 77
"$@" 2>"$result/err"; echo $? >"$result/status"
find "$place" -mindepth 1 >"$result/left"
"""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """A command, what an undisturbed run leaves, and how many events on the disk it takes."""

    command: WritingCommand
    output: dict[str, Any]
    events: int
    bytes: int


def run_undisturbed(command: WritingCommand, place: Path) -> Undisturbed:
    """Run a command to its end. Raises RuntimeError if it fails."""
    place.mkdir(parents=True)
    done = run_counted(command, place, 0)
    if done.returncode:
        raise RuntimeError(f"{command.name}: {done.stderr}")
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    events = _log(place).stat().st_size
    return Undisturbed(command=command, output=dict(command.view(place)), events=events, bytes=size)


def _log(place: Path) -> Path:
    return place.with_name(f"{place.name}.events")


def run_counted(command: WritingCommand, place: Path, kill_at: int) -> "subprocess.CompletedProcess[str]":
    """Run a command under ``tests.soak.disk_events``, which kills it at an event, or at none."""
    asked = json.dumps({"below": str(place), "log": str(_log(place)), "kill_at": kill_at})
    counted = replace(command, words=("tests.soak.disk_events", *command.words))
    return subprocess.run(
        counted.command_of(command.python, place),
        env={**environment(), "OMP_NUM_THREADS": "1", VARIABLE: asked},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def cut_power(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Kill the whole run at one event, lose what was not forced to disk, and run it again."""
    yield from _kill_and_resume(whole, place, stream, loses=True)


def kill(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Kill the whole run at one event, and run it again."""
    yield from _kill_and_resume(whole, place, stream, loses=False)


def _kill_and_resume(whole: Undisturbed, place: Path, stream: random.Random, *, loses: bool) -> Iterator[str]:
    place.mkdir(parents=True)
    kill_at, since = stream.randint(1, whole.events + 1), time.time_ns() - 20_000_000
    done = run_counted(whole.command, place, kill_at)
    lost = lose_power(place, Flushed.read(Path(f"{_log(place)}.flushed")), since, stream) if loses else []
    when = f"event {kill_at} of {whole.events}, lost: {', '.join(lost) or 'nothing'}"
    if done.returncode not in (0, -signal.SIGKILL):
        yield f"{when}: {describe_status(done)}"
    if not done.returncode:  # a command that says that it is done has done it, whatever comes
        for fault in _compare(whole, place):
            yield f"{when}, after the end: {fault}"
    for fault in _resume(whole, place):
        yield f"{when}: {fault}"


def _resume(whole: Undisturbed, place: Path) -> Iterator[str]:
    """Run the command again and compare its output with that of the undisturbed run."""
    done = whole.command.run(place)
    if done.returncode and not whole.command.resumes:
        if len(done.stderr.splitlines()) != 1:
            yield f"second run: {describe_status(done)}"
        shutil.rmtree(place / whole.command.output)
        done = whole.command.run(place)
    if done.returncode:
        yield f"second run: {describe_status(done)}"
        return
    if "Traceback" in done.stderr:
        yield f"second run: a traceback: {describe_status(done)}"
    yield from _compare(whole, place)
    left = (place / whole.command.output).rglob("unfinished")
    yield from (f"{path.relative_to(place)} is left" for path in left)


def _compare(whole: Undisturbed, place: Path) -> Iterator[str]:
    """Yield what differs from the output of the undisturbed run."""
    found = whole.command.view(place)
    for name in sorted(found.keys() | whole.output.keys()):
        if name not in found:
            yield f"{name} is missing"
        elif name not in whole.output:
            yield f"{name} is too many"
        elif found[name] != whole.output[name]:
            yield f"{name} differs"


def set_clock_back(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Kill the run, let all its files come from the future, and run it again."""
    place.mkdir(parents=True)
    run_counted(whole.command, place, stream.randint(1, whole.events))
    future = time.time() + YEARS
    for path in place.rglob("*"):
        os.utime(path, (future, future), follow_symlinks=False)
    yield from _resume(whole, place)


def change_input(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Kill the run, change an input, run it again, and compare with a fresh run on the changed input.

    A run that is refused with one line is no fault. The input gets its contents back.
    """
    place.mkdir(parents=True)
    run_counted(whole.command, place, stream.randint(1, whole.events + 1))
    path = stream.choice(whole.command.inputs)
    before = path.read_bytes()
    try:
        path.write_bytes(before.replace(b"the", b"thy", 1))
        again, fresh = whole.command.run(place), place.with_name(f"{place.name}-fresh")
        fresh.mkdir()
        if again.returncode:
            if again.returncode not in (1, 2) or len(again.stderr.splitlines()) != 1:
                yield f"with another input: {describe_status(again)}"
            return
        right = run_undisturbed(whole.command, fresh / "run")
        yield from (f"with another input: {fault}" for fault in _compare(right, place))
    finally:
        path.write_bytes(before)


def run_twice_at_once(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Start the command twice at the same time, some milliseconds apart. One of them must win."""
    place.mkdir(parents=True)
    runs = []
    for _ in range(2):
        runs.append(
            subprocess.Popen(
                whole.command.command(place),
                env={**environment(), "OMP_NUM_THREADS": "1"},
                cwd=place,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        time.sleep(stream.uniform(0, 0.3))
    endings = [(run.communicate(timeout=LIMIT_SECONDS)[1], run.returncode) for run in runs]
    if not any(status == 0 for _, status in endings):
        yield f"neither run succeeded: {endings}"
    for said, status in endings:
        if status not in (0, 1, 2) or "Traceback" in said:
            yield f"exit status {status}: {said[-300:]}"
    yield from _resume(whole, place)


def fill_disk(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Run the command on a disk of a part of the bytes that it needs, and again on a larger one."""
    size = max(4096, int(stream.random() * whole.bytes))
    result = _run_mounted(SMALL_DISK, whole.command, place, str(size))
    if result is None:
        return
    errors, status = (result / "err").read_text(), int((result / "status").read_text())
    last = (errors.splitlines() or [""])[-1]
    if status != 0 and (status != 1 or NO_SPACE not in last or "Traceback" in errors):
        yield f"disk of {size} bytes: exit status {status}: {last}"
    left = [line for line in (result / "left").read_text().splitlines() if status]
    yield from (f"disk of {size} bytes: {line} is left" for line in left)
    if not (result / "made").exists():
        yield f"disk of {size} bytes: second run: {(result / 'err2').read_text()[-300:]}"
        return
    yield from (f"disk of {size} bytes: {fault}" for fault in _compare(whole, result / "made"))


def write_to_read_only_disk(whole: Undisturbed, place: Path, stream: random.Random) -> Iterator[str]:
    """Run the command on a disk that takes no writing: one line, and nothing there."""
    result = _run_mounted(READ_ONLY_DISK, whole.command, place)
    if result is None:
        return
    lines = (result / "err").read_text().splitlines()
    status = int((result / "status").read_text())
    errors = [line for line in lines if "error: " in line]
    if status not in (1, 2) or len(errors) != 1 or "Traceback" in "".join(lines):
        yield f"exit status {status}: {lines[-3:]}"
    yield from (f"{line} is there" for line in (result / "left").read_text().splitlines())


def _run_mounted(script: str, command: WritingCommand, place: Path, *arguments: str) -> Path | None:
    """Run a script that mounts a disk and runs the command there. Return the directory of its results.

    Returns None if no disk can be mounted here.
    """
    disk, result = place / "disk", place / "result"
    for folder in (disk, result):
        folder.mkdir(parents=True)
    mounting = ["unshare", "-rm", "sh", "-c", script, "sh", str(disk), *arguments, str(result)]
    # The mounted disk is seen only by processes that are started from the script.
    words = command.command_of(sys.executable, disk)
    subprocess.run(
        [*mounting, *words],
        env={**environment(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=2 * LIMIT_SECONDS,
        check=False,
    )
    return result if (result / "status").exists() else None


Accident = Callable[[Undisturbed, Path, random.Random], Iterator[str]]

ACCIDENTS: dict[str, Accident] = {
    "power cut": cut_power,
    "kill": kill,
    "clock set back": set_clock_back,
    "changed input": change_input,
    "two runs at once": run_twice_at_once,
    "full disk": fill_disk,
    "read-only disk": write_to_read_only_disk,
}
