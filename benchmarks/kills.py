"""``python -m benchmarks.kills --rounds 25``: runs killed at random moments, and the same command again.

Each round starts a run in a process group of its own, and at a moment somewhere in its usual duration
sends SIGKILL to the whole group, to the launching process alone, or to one worker. Then the same command
runs until it ends well. Its directory must hold the files of an undisturbed run, byte for byte, and no
others; shards that were finished must not have been made again; no process may be left. One line a
round; exit status 1 where anything differs. Reads /proc, so it needs Linux.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VICTIMS = ("run", "worker", "launcher")
SETTINGS = ("--max-seq-length", "128", "--max-predictions-per-seq", "20", "--dupe-factor", "5")
PATIENCE_SECONDS = 200
ATTEMPTS = 3
BOOKS = ("manifest.json", "MD5SUMS", "vocab.txt")
SOONER = 0.8
"""What a moment is shortened by when the run has ended before it."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A way to make the dataset: what follows ``python -m``, without inputs, output, vocabulary, settings."""

    name: str
    words: tuple[str, ...]

    def command(self, parts: Sequence[Path], output: Path) -> list[str]:
        names = [str(part) for part in parts]
        inputs = names if self.words[0] == "bertdata" else ["--input", *names]
        places = ["--output", str(output), "--vocab", str(ROOT / "golden" / "vocab.txt")]
        return [sys.executable, "-m", *self.words, *inputs, *places, *SETTINGS]


CREATE = Route(name="create", words=("bertdata", "create", "--workers", "2"))
BEAM = Route(
    name="Beam",
    words=(
        "beam_pipelines.prepare",
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=2",
    ),
)
SHUFFLED = Route(name="shuffled", words=(*BEAM.words, "--shuffle", "global", "--num-shards", "16"))
ROUTES = (CREATE, BEAM, SHUFFLED)


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """What a route makes when nobody disturbs it, and how long that takes."""

    route: Route
    files: dict[str, bytes]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was killed when, what the next runs kept and made, and every fault."""

    route: str
    moment: float
    share: float
    victim: str
    kept: int
    made: int
    faults: tuple[str, ...]

    def __str__(self) -> str:
        verdict = "; ".join(self.faults) or "the same"
        when = f"{self.moment:6.2f} s  {self.share:4.0%}"
        return f"{self.route:<8}  {when}  {self.victim:<16}  {self.kept:>4}  {self.made:>4}  {verdict}"


HEADER = f"{'round':>5}  {'route':<8}  {'moment':>8}  {'':>4}  {'killed':<16}  kept  made  files"


def make_parts(place: Path, parts: int, part_bytes: int) -> list[Path]:
    """Parts of the sample corpus's documents, each in another order, repeated to the length."""
    text = b"\n\n".join(path.read_bytes() for path in sorted((ROOT / "golden" / "corpus").glob("part-*")))
    documents = [document for document in text.split(b"\n\n") if document.strip()]
    paths = [place / f"part-{number:05d}-of-{parts:05d}" for number in range(parts)]
    for number, path in enumerate(paths):
        start = number % len(documents)
        once = b"\n\n".join(documents[start:] + documents[:start]) + b"\n\n"
        path.write_bytes(once * (part_bytes // len(once) + 1))
    return paths


def start(command: list[str]) -> "subprocess.Popen[bytes]":
    """The command in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def run_undisturbed(route: Route, parts: Sequence[Path], output: Path) -> Undisturbed:
    """The route's files and duration; the run's failure ends the program."""
    begin = time.monotonic()
    status = start(route.command(parts, output)).wait(PATIENCE_SECONDS)
    if status:
        sys.exit(f"{route.name}: exit status {status} of a run that nobody disturbed")
    return Undisturbed(route=route, files=contents(output), seconds=time.monotonic() - begin)


def play(
    expected: Undisturbed, parts: Sequence[Path], output: Path, share: float, victim: str, rng: random.Random
) -> Round:
    """Kill a run when that share of its usual duration has passed, run it to its end, compare."""
    command = expected.route.command(parts, output)
    moment = share * expected.seconds
    while (process := start_and_wait(command, moment)).poll() is not None:
        shutil.rmtree(output)  # it was quicker this time
        moment *= SOONER
    children = list(descendants(process.pid))
    killed = kill(process, children, victim, rng)
    faults = []
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        faults.append(f"did not end within {PATIENCE_SECONDS} s")
    finished = finished_shards(output)
    statuses = run_to_the_end(command)
    if statuses[-1]:
        faults.append(f"run again, it ended with {statuses}")
    faults += [f"process {pid} is left" for pid in children if not ends_soon(pid)]
    found = contents(output)
    faults += differences(found, expected.files)
    shards = [name for name in expected.files if name not in BOOKS]
    kept = [name for name in shards if name in finished and finished[name] == stamp(output / name)]
    faults += [f"{name} was finished and made again" for name in sorted(set(finished) - set(kept))]
    return Round(
        route=expected.route.name,
        moment=moment,
        share=moment / expected.seconds,
        victim=killed,
        kept=len(kept),
        made=len(shards) - len(kept),
        faults=tuple(faults),
    )


def start_and_wait(command: list[str], seconds: float) -> "subprocess.Popen[bytes]":
    """The command so many seconds after its start, or when it has ended."""
    process, end = start(command), time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    return process


def kill(process: "subprocess.Popen[bytes]", children: list[int], victim: str, rng: random.Random) -> str:
    """Send SIGKILL; what got it, in words."""
    if victim == "worker" and children:
        os.kill(rng.choice(children), signal.SIGKILL)
        return "worker"
    if victim == "launcher":
        process.kill()
        return "launcher"
    os.killpg(process.pid, signal.SIGKILL)
    return "run" if victim == "run" else "run (no worker)"


def descendants(pid: int) -> Iterator[int]:
    """Processes below that one, but Python's own little helper."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, _read(listed).split()):
            if b"resource_tracker" not in _read(Path(f"/proc/{child}/cmdline")):
                yield child
            yield from descendants(child)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process is gone
        return b""


def ends_soon(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while (state := _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1]) not in ([], [b"Z"]):
        if time.monotonic() > deadline:
            return bool(state == [b"X"])
        time.sleep(0.02)
    return True


def run_to_the_end(command: list[str]) -> list[int]:
    """Exit statuses of the command, run until it ends well, but not for ever."""
    statuses = []
    for _ in range(ATTEMPTS):
        process = start(command)
        try:
            statuses.append(process.wait(PATIENCE_SECONDS))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            statuses.append(process.wait())
        if not statuses[-1]:
            break
    return statuses


def finished_shards(output: Path) -> dict[str, tuple[int, int]]:
    """The shards that the run had noted as finished, each with its stamp."""
    noted = [path.stem for path in (output / "unfinished").glob("*.json") if path.name != "plan.json"]
    if (output / "manifest.json").exists():
        noted += [path.name for path in output.iterdir() if path.is_file() and path.name not in BOOKS]
    return {name: stamp(output / name) for name in noted}


def stamp(path: Path) -> tuple[int, int]:
    """What changes when the file is written anew, even with the same bytes."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def contents(directory: Path) -> dict[str, bytes]:
    """The bytes of all files below the directory, by name."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Each file that is missing, stray or of other bytes."""
    faults = [f"{name} is missing" for name in expected if name not in found]
    faults += [f"{name} is stray" for name in found if name not in expected]
    faults += [f"{name} differs" for name in expected if found.get(name, expected[name]) != expected[name]]
    return faults


def play_all(
    routes: Sequence[Route], rounds: int, seed: int, place: Path, parts: int, part_bytes: int
) -> Iterator[Round]:
    """The rounds, routes by turns, victims by turns, moments spread over each route's duration."""
    rng = random.Random(seed)
    inputs = make_parts(place, parts, part_bytes)
    known = [run_undisturbed(route, inputs, place / f"undisturbed-{n}") for n, route in enumerate(routes)]
    turns = -(-rounds // len(routes))
    order = [rng.sample(range(turns), turns) for _ in routes]  # which stretch of the duration is whose turn
    for number in range(rounds):
        turn, which = divmod(number, len(routes))
        share = (order[which][turn] + rng.random()) / turns
        victim = VICTIMS[turn % len(VICTIMS)]
        yield play(known[which], inputs, place / f"round-{number}", share, victim, rng)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--routes", nargs="+", choices=[route.name for route in ROUTES])
    parser.add_argument("--parts", type=int, default=16, help="input parts (default: 16)")
    parser.add_argument("--part-bytes", type=int, default=2_000_000, help="size of each (default: 2 MB)")
    flags = parser.parse_args(arguments)
    routes = [route for route in ROUTES if flags.routes is None or route.name in flags.routes]
    print(HEADER, flush=True)
    faulty = 0
    with tempfile.TemporaryDirectory() as place:
        played = play_all(routes, flags.rounds, flags.seed, Path(place), flags.parts, flags.part_bytes)
        for number, one in enumerate(played, 1):
            print(f"{number:>5}  {one}", flush=True)
            faulty += bool(one.faults)
    print(f"{flags.rounds} kills, seed {flags.seed}: {flags.rounds - faulty} times the same files")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
