"""Bit flips, cuts and extensions of every kind of file that a command writes.

Each damaged file must be found and named by the check that its directory has (``verify-md5``, or the reading
of a checkpoint), or the next run of the command that was writing it must end with the right bytes. The card
of a dataset is left out. It is the user's to edit, so nothing checks it.
"""

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertdata.cli.main import main as bertdata
from bertdata.dataset.companion_files import CARD_NAME
from tests.soak.accidents import Undisturbed, run_undisturbed
from tests.soak.hostile_checkpoints import Ending, ran
from tests.soak.writing_commands import WritingCommand
from tests.support.commands import files_below
from trainer.checkpoints.checkpoint import find_checkpoints
from trainer.checkpoints.damage import find_fault

MOST_FILES = 40
"""Files of an output that are damaged; of more files they are drawn."""


@dataclass(frozen=True, kw_only=True)
class Damaged:
    """Result of one damage: the output, the file, the damage in words, and what was wrong, or ""."""

    output: str
    file: str
    damage: str
    fault: str


def flip(data: bytes, stream: random.Random) -> tuple[bytes, str]:
    """Flip one bit."""
    if not data:
        return b"\0", "a byte was added"
    at, bit = stream.randrange(len(data)), stream.randrange(8)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :], f"bit {bit} of byte {at} was flipped"


def cut(data: bytes, stream: random.Random) -> tuple[bytes, str]:
    """Remove the end."""
    if not data:
        return b"\0", "a byte was added"
    kept = stream.choice((0, len(data) - 1, stream.randrange(len(data))))
    return data[:kept], f"cut after {kept} of {len(data)} bytes"


def extend(data: bytes, stream: random.Random) -> tuple[bytes, str]:
    """Append bytes: zeros, random ones, white space, or the end once more."""
    count = stream.randint(1, 64)
    more = stream.choice((bytes(count), stream.randbytes(count), b"\n" * count, data[-count:] or b" "))
    return data + more, f"{len(more)} bytes were appended: {more[:16]!r}"


DAMAGES = (flip, cut, extend)

Check = Callable[[Path], Ending]
"""Function that checks an output's directory, and returns the ending of the check."""


def check_by_md5(place: Path) -> Ending:
    """Check a directory by the command ``verify-md5``, whose faults are on standard output."""
    return ran(bertdata, "verify-md5", place / "out", hears_output=True)


def check_checkpoints(place: Path) -> Ending:
    """Check the checkpoints of a run as ``--resume`` does before it continues from one."""
    faults = [find_fault(path, reads_all=True) for path in find_checkpoints(str(place / "out")).values()]
    told = [fault for fault in faults if fault]
    return Ending(status=int(bool(told)), said="\n".join(told), fault="")


def damage_output(
    whole: Path, name: str, files: Sequence[str], check: Check, count: int, stream: random.Random
) -> Iterator[Damaged]:
    """Damage files of a finished output one after the other, and check it each time.

    whole: directory that holds the output.
    name: name of the output, for the results.
    files: names of the files to damage, below the directory.
    """
    ending = check(whole)
    if ending.status:
        raise RuntimeError(f"{name}: {ending}")
    for number in range(count):
        file, damage = files[number // len(DAMAGES) % len(files)], DAMAGES[number % len(DAMAGES)]
        path = whole / file
        before = path.read_bytes()
        data, what = damage(before, stream)
        path.write_bytes(data)
        try:
            ending = check(whole)
        finally:
            path.write_bytes(before)
        fault = ending.fault
        if not fault and not ending.status and not _is_harmless(data, before):
            fault = "was not found"
        elif not fault and ending.status and Path(file).name not in ending.said:
            fault = f"is not named: {ending.said[:200]}"
        yield Damaged(output=name, file=file, damage=what, fault=fault)


def _is_harmless(data: bytes, before: bytes) -> bool:
    """Return True for equal bytes, and for white space after a JSON object, which says the same."""
    return data == before or (before.startswith(b"{") and data.rstrip() == before.rstrip())


def damage_unfinished(
    command: WritingCommand, whole: Undisturbed, stopped: Path, count: int, stream: random.Random
) -> Iterator[Damaged]:
    """Damage files of a stopped run, and run its command again in this process.

    It must end with the right bytes, or be refused by one line that names the file. If the run was stopped
    after it had written its manifest, the output is finished, and the command keeps it as it is. Then
    ``verify-md5`` must find the damage.

    stopped: directory with the output of the stopped run.
    """
    files = [name for name in files_below(stopped / command.output) if Path(name).name != CARD_NAME]
    is_finished = (stopped / command.output / "manifest.json").exists()
    for number in range(count):
        place = stopped.with_name(f"{stopped.name}-{number}")
        shutil.copytree(stopped, place)
        file, damage = files[number // len(DAMAGES) % len(files)], DAMAGES[number % len(DAMAGES)]
        path = place / command.output / file
        data, what = damage(path.read_bytes(), stream)
        path.write_bytes(data)
        ending = ran(bertdata, *command.make_words(place)[1:])
        fault = ending.fault
        errors = [line for line in ending.said.splitlines() if "error: " in line]
        if not fault and ending.status and (len(errors) != 1 or Path(file).name not in errors[0]):
            fault = f"exit status {ending.status}: {ending.said[:300]}"
        is_equal = ending.status or dict(command.view(place)) == whole.output
        if not fault and not is_equal and not (is_finished and check_by_md5(place).status):
            fault = "the next run ends with other bytes"
        yield Damaged(output=f"{command.name}, stopped", file=file, damage=what, fault=fault)
        shutil.rmtree(place)


def damage_all(commands: Sequence[WritingCommand], count: int, seed: int, place: Path) -> Iterator[Damaged]:
    """Damage the outputs of all commands that have a check, ``count`` times in all."""
    checked = [command for command in commands if command.output == "out" and command.resumes]
    random.Random(seed).shuffle(checked)  # in case that the time is over before the last
    for command in checked:
        stream = random.Random(f"{seed} {command.name}")
        whole = place / command.name.replace(" ", "-")
        run_undisturbed(command, whole)
        is_run = command.words[0] == "trainer"
        files = [f"out/{name}" for name in files_below(whole / "out") if name != CARD_NAME]
        if is_run:  # a run's tables and logs have no checksums
            files = [file for file in files if "checkpoints/" in file]
        files = stream.sample(files, min(len(files), MOST_FILES))
        check = check_checkpoints if is_run else check_by_md5
        yield from damage_output(whole, command.name, files, check, -(-count // len(checked)), stream)
        shutil.rmtree(whole)
