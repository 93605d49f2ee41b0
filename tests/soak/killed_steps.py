"""Kills and full disks in long steps (``python -m tests.soak.killed_steps``): extract, segment, create, pack.

Each round starts a step with two workers and waits until its directory holds a random share of the bytes of
an undisturbed run. Then it sends SIGKILL or SIGTERM to the launcher or to one worker, looks at exit status
and last line, and runs the same command again. The directory must hold exactly the files of the undisturbed
run; files that were noted as finished must not have been made again; no process and no temporary file may
be left. A full disk is a small file system in memory, which grows before the second run. One line a round;
exit status 1 where anything is wrong. Linux only; full disks need ``unshare`` with user namespaces.
"""

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from benchmarks.corpus import find_kit, make_parts
from benchmarks.processes import list_descendants
from tests.soak.kills import contents, differences, ends_soon, stamp
from tests.support.paths import ROOT

LIMIT_SECONDS = 180
VICTIMS = tuple(itertools.product(("launcher", "worker"), (signal.SIGKILL, signal.SIGTERM)))
SHORTEN = 0.7
"""Factor for the share of bytes when the run has ended before it was seen."""
WORDS = "Water runs down the old stone steps. It leaves by the garden below, and Mr. Smith looks on. "
WORKER_DIED = "error: a worker process died before its work was done"
INTERRUPTED = "interrupted; what is finished is kept, run the same command to go on"
NO_SPACE = "No space left on device"
SMALL_DISK = """
place=$1 size=$2 result=$3; shift 3
mount -t tmpfs -o size=$size tmpfs "$place" || exit 77
"$@" 2>"$result/err"; echo $? >"$result/status"
find "$place" -name '*.tmp' >"$result/left"
mount -o remount,size=1g "$place" || exit 77
"$@" 2>"$result/err2" || exit 1
cp -a "$place/out" "$result/out"
"""


@dataclass(frozen=True, kw_only=True)
class KilledStep:
    """A command with its inputs: ``python -m bertdata`` and these words, then the output."""

    name: str
    words: tuple[str, ...]

    def command(self, output: Path) -> list[str]:
        return [sys.executable, "-m", "bertdata", *self.words, "--workers", "2", "--output", str(output)]


def extract_step(place: Path) -> KilledStep:
    """A dump with template pages and articles that use them, for the engine whose workers are processes."""
    head = "<mediawiki><siteinfo><base>https://x.org/wiki/Main</base></siteinfo>\n"
    form = "<page><title>{}</title><ns>{}</ns><id>{}</id><revision><text>{}</text></revision></page>\n"
    templates = [form.format(f"Template:T{n}", 10, n, f"told {n} times {{{{{{1}}}}}}") for n in range(1, 50)]
    plain = f"[[a|{WORDS}]]\n\n" * 100

    def text(number: int) -> str:
        return f"{number} '''bold''' " + f"{{{{T{number % 49 + 1}|{WORDS}}}}}\n\n" * 20 + plain

    pages = [form.format(f"Page {n}", 0, 1000 + n, text(n)) for n in range(300)]
    dump = place / "enwiki-20200101-pages.xml"
    dump.write_text("".join([head, *templates, *pages, "</mediawiki>\n"]))
    return KilledStep(name="extract", words=("extract", str(dump), "--engine", "python"))


def segment_step(place: Path, recipe: str = "mlperf") -> KilledStep:
    """Extracted files, in parts of two or in shards, for the slow engine, which leaves time to kill it."""
    article = f'<doc id="1" url="x" title="T">\nT\n\n{WORDS * 12}\n\n</doc>\n'
    folder = place / f"extracted-{recipe}" / "AA"
    folder.mkdir(parents=True)
    for number in range(80):
        (folder / f"wiki_{number:02d}").write_text(article * 30)
    settings = {
        "mlperf": ("--eval-articles", "50", "--block-size", "0.08"),
        "nvidia": ("--training-shards", "8", "--test-shards", "2"),
    }[recipe]
    words = ("segment", str(folder), "--recipe", recipe, *settings, "--engine", "python")
    return KilledStep(name=f"segment {recipe}", words=words)


def nvidia_step(place: Path) -> KilledStep:
    return segment_step(place, "nvidia")


def create_step(place: Path, container: str = "tfrecord") -> KilledStep:
    """Parts of the sample corpus, into two phases."""
    parts = [str(path) for path in make_parts(place, 12, 300_000)]
    settings = ("--recipe", "nvidia", "--format", container)
    words = ("create", *parts, "--vocab", str(ROOT / "golden" / "vocab.txt"), *settings)
    return KilledStep(name=f"create {container}", words=words)


def hdf5_step(place: Path) -> KilledStep:
    return create_step(place, "hdf5")


def pack_step(place: Path) -> KilledStep:
    """A dataset of the sample corpus, into shards enough that some are finished and others not."""
    source = place / "source"
    words = create_step(place).words
    done = subprocess.run(
        [sys.executable, "-m", "bertdata", *words, "--phase", "1", "--output", str(source)],
        env=environment(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"pack: {done.stderr.decode()}")
    return KilledStep(name="pack", words=("pack", str(source), "--layout", "habana", "--num-shards", "24"))


STEPS: dict[str, Callable[[Path], KilledStep]] = {
    "extract": extract_step,
    "segment": segment_step,
    "nvidia": nvidia_step,
    "create": create_step,
    "hdf5": hdf5_step,
    "pack": pack_step,
}


@dataclass(frozen=True, kw_only=True)
class Round:
    """Result of one round: accident, share of the bytes at that time, files kept, faults."""

    step: str
    accident: str
    share: float
    kept: int
    faults: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "; ".join(self.faults) or "the same"
        return f"{self.step:<15}  {self.accident:<18}  {self.share:4.0%}  {self.kept:>4}  {verdict}"


HEADER = f"{'round':>5}  {'step':<15}  {'accident':<18}  {'at':>4}  kept  files"


def environment() -> dict[str, str]:
    """The environment of the steps, with the reference kit's Punkt tables where it is at hand."""
    found = find_kit()
    tables = {} if found is None else {"NLTK_DATA": str(found / "nltk_data")}
    return {**tables, **os.environ, "PYTHONPATH": str(ROOT)}


def run_undisturbed(step: KilledStep, output: Path) -> dict[str, bytes]:
    """The files of a run that nobody disturbs. Exit with a message where it fails."""
    done = subprocess.run(
        step.command(output), env=environment(), capture_output=True, timeout=LIMIT_SECONDS, check=False
    )
    if done.returncode:
        sys.exit(f"{step.name}: {done.stderr.decode()}")
    return contents(output)


def bytes_below(directory: Path) -> int:
    """The bytes of all files that are there at the moment, or -1 before there is a directory."""
    if not directory.is_dir():
        return -1
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # renamed in between
                continue
    return total


def start_and_wait(
    command: list[str], output: Path, wanted: int, needs_worker: bool, errors: Path
) -> "tuple[subprocess.Popen[bytes], list[int]] | None":
    """The run and its workers once its directory holds so many bytes, or None where it ends before."""
    with errors.open("wb") as file:
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=file)
    while process.poll() is None:
        if bytes_below(output) >= wanted:
            children = list(list_descendants(process.pid))
            if children or not needs_worker:
                return process, children
        time.sleep(0.001)
    return None


def kill_and_resume(
    step: KilledStep,
    expected: dict[str, bytes],
    output: Path,
    share: float,
    accident: tuple[str, signal.Signals],
    rng: random.Random,
) -> Round:
    """Kill a run when its directory holds that fraction of the bytes, run it again, compare the files."""
    victim, how = accident
    total, errors = sum(map(len, expected.values())), output.with_suffix(".err")
    command = step.command(output)
    while (
        started := start_and_wait(command, output, int(total * share), victim == "worker", errors)
    ) is None:
        shutil.rmtree(output)  # it was faster than we looked
        share *= SHORTEN
    process, children = started
    os.kill(process.pid if victim == "launcher" else rng.choice(children), how)
    faults = []
    try:
        status = process.wait(LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        faults.append(f"did not end within {LIMIT_SECONDS} s")
        process.kill()
        status = process.wait()
    cleans_up = status != -signal.SIGKILL
    if cleans_up:
        faults += [f"process {pid} is left" for pid in children if not ends_soon(pid)]
    faults += wrong_end(victim, how, status, errors.read_text(), is_whole(output, expected))
    faults += [
        f"{path.relative_to(output)} is left"
        for path in output.rglob("*.tmp")
        if cleans_up or path.parent.name != "unfinished"
    ]
    finished = finished_files(output)
    second = subprocess.run(
        command, env=environment(), capture_output=True, timeout=LIMIT_SECONDS, check=False
    )
    if second.returncode:
        faults.append(f"second run: exit status {second.returncode}: {second.stderr.decode()[-300:]}")
    faults += [f"process {pid} is left" for pid in children if not ends_soon(pid)]
    faults += differences(contents(output), expected)
    if (output / "unfinished").exists():
        faults.append("unfinished/ is left")
    kept = [name for name in finished if finished[name] == stamp(output / name)]
    faults += [f"{name} was finished and made again" for name in sorted(set(finished) - set(kept))]
    name = f"{how.name} {victim}"
    return Round(step=step.name, accident=name, share=share, kept=len(kept), faults=tuple(faults))


def is_whole(output: Path, expected: dict[str, bytes]) -> bool:
    """True if the directory holds the files of the undisturbed run already."""
    try:
        return contents(output) == expected
    except FileNotFoundError:  # a worker that is about to end removes its file
        return False


def wrong_end(victim: str, how: signal.Signals, status: int, errors: str, whole: bool) -> Iterator[str]:
    """Faults in exit status and messages of a killed run. A complete directory needs no message."""
    last = (errors.splitlines() or [""])[-1]
    if "Traceback" in errors:
        yield f"a traceback: {last}"
    if victim == "worker":
        if (status, WORKER_DIED in last) != (1, True) and not (status == 0 and whole):
            yield f"exit status {status}: {last}"
    elif how == signal.SIGKILL:
        if status != -how:
            yield f"exit status {status}: {last}"
    elif (status, INTERRUPTED in last) != (128 + how, True) and not whole:
        yield f"exit status {status}: {last}"


def finished_files(output: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each file that the run has noted as finished."""
    found = {}
    for note in output.rglob("unfinished/*.json"):
        path = note.parent.parent / unquote(note.stem)
        if path.is_file():
            found[path.relative_to(output).as_posix()] = stamp(path)
    return found


def fill_disk_and_resume(
    step: KilledStep, expected: dict[str, bytes], place: Path, share: float
) -> Round | None:
    """Run a step on a disk of that fraction of the bytes, then a larger one, or None without such disks."""
    size = max(4096, int(share * sum(map(len, expected.values()))))
    disk, result = place / "disk", place / "result"
    for folder in (disk, result):
        folder.mkdir(parents=True)
    small = ["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", str(disk), str(size), str(result)]
    command = [*small, *step.command(disk / "out")]
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, timeout=2 * LIMIT_SECONDS, check=False
        )
    except FileNotFoundError:
        return None
    if not (result / "status").exists():
        return None
    faults = []
    errors, status = (result / "err").read_text(), int((result / "status").read_text())
    last = (errors.splitlines() or [""])[-1]
    if (status, NO_SPACE in last, "Traceback" in errors) != (1, True, False):
        faults.append(f"exit status {status}: {last}")
    faults += [f"{line} is left" for line in (result / "left").read_text().splitlines()]
    if done.returncode:
        faults.append(f"second run: {(result / 'err2').read_text()[-300:]}")
    faults += differences(contents(result / "out"), expected)
    return Round(step=step.name, accident="full disk", share=share, kept=0, faults=tuple(faults))


def all_rounds(names: Sequence[str], rounds: int, full_disks: int, seed: int, place: Path) -> Iterator[Round]:
    """The rounds of each step: accidents in turn, moments spread over the whole run."""
    for name in names:
        rng = random.Random(f"{seed} {name}")
        here = place / name
        here.mkdir()
        step = STEPS[name](here)
        expected = run_undisturbed(step, here / "undisturbed")
        for number, stretch in enumerate(rng.sample(range(rounds), rounds)):
            share = (stretch + rng.random()) / rounds
            accident = VICTIMS[number % len(VICTIMS)]
            yield kill_and_resume(step, expected, here / f"kill-{number}", share, accident, rng)
        for number in range(full_disks):
            share = (number + rng.random()) / full_disks
            done = fill_disk_and_resume(step, expected, here / f"disk-{number}", share)
            if done is None:
                print(f"{name}: no small disk can be mounted here; full disks are left out", file=sys.stderr)
                break
            yield done


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.killed_steps", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills of each step (default: 20)")
    parser.add_argument("--full-disks", type=int, default=5, help="full disks for each step (default: 5)")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    flags = parser.parse_args(arguments)
    print(HEADER, flush=True)
    number = faulty = 0
    with tempfile.TemporaryDirectory() as place:
        results = all_rounds(flags.steps, flags.rounds, flags.full_disks, flags.seed, Path(place))
        for number, one in enumerate(results, 1):
            print(f"{number:>5}  {one}", flush=True)
            faulty += bool(one.faults)
    print(f"{number} rounds, seed {flags.seed}: {number - faulty} times the same files")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
