"""Random kills: runs killed at random moments and resumed (``python -m tests.soak.kills --rounds 24``).

Each round starts a run in a process group of its own. At a random moment of its usual duration it sends
SIGKILL to the whole group, to the launching process alone, or to one worker. Then it runs the same command
until that succeeds. The directory must hold exactly the files of an undisturbed run, byte for byte;
finished shards must not have been made again; no process may be left. One line a round; exit status 1 where
anything differs. Linux only: it reads /proc.
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

from benchmarks.corpus import make_parts
from benchmarks.processes import list_descendants, read_bytes
from tests.support.paths import ROOT

VICTIMS = ("run", "worker", "launcher")
SETTINGS = ("--max-seq-length", "128", "--max-predictions-per-seq", "20", "--dupe-factor", "5")
TIMEOUT_SECONDS = 200
ATTEMPTS = 3
LISTS = ("manifest.json", "MD5SUMS", "vocab.txt")
SHORTEN = 0.8
"""Factor for the moment of the kill when the run has ended before it."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A way to make the dataset: ``python -m`` and these words, then inputs, output, vocabulary, settings."""

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
CREATE_SHUFFLED = Route(
    name="create shuffled", words=(*CREATE.words, "--shuffle", "global", "--num-shards", "16")
)
ROUTES = (CREATE, BEAM, SHUFFLED, CREATE_SHUFFLED)


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """Files and duration of a route's run that is not killed."""

    route: Route
    files: dict[str, bytes]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class KillRound:
    """Result of one kill: victim, moment, shards kept and made again, faults."""

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
        return f"{self.route:<15}  {when}  {self.victim:<16}  {self.kept:>4}  {self.made:>4}  {verdict}"


HEADER = f"{'round':>5}  {'route':<15}  {'moment':>8}  {'':>4}  {'killed':<16}  kept  made  files"


def start(command: list[str]) -> "subprocess.Popen[bytes]":
    """Start the command in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def run_undisturbed(route: Route, parts: Sequence[Path], output: Path) -> Undisturbed:
    """Run the route to its end. Exit with a message where it fails."""
    begin = time.monotonic()
    status = start(route.command(parts, output)).wait(TIMEOUT_SECONDS)
    if status:
        sys.exit(f"{route.name}: exit status {status} of an undisturbed run")
    return Undisturbed(route=route, files=contents(output), seconds=time.monotonic() - begin)


def kill_and_resume(
    expected: Undisturbed, parts: Sequence[Path], output: Path, share: float, victim: str, rng: random.Random
) -> KillRound:
    """Kill a run after ``share`` of its usual duration, run it again to its end, compare the files."""
    command = expected.route.command(parts, output)
    moment = share * expected.seconds
    while (process := start_and_wait(command, moment)).poll() is not None:
        shutil.rmtree(output)  # the run was faster this time
        moment *= SHORTEN
    children = list(list_descendants(process.pid))
    killed = kill(process, children, victim, rng)
    faults = []
    try:
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        faults.append(f"did not end within {TIMEOUT_SECONDS} s")
    finished = finished_shards(output)
    statuses = run_to_the_end(command)
    if statuses[-1]:
        faults.append(f"exit statuses of the runs after it: {statuses}")
    faults += [f"process {pid} is left" for pid in children if not ends_soon(pid)]
    found = contents(output)
    faults += differences(found, expected.files)
    shards = [name for name in expected.files if name not in LISTS]
    kept = [name for name in shards if name in finished and finished[name] == stamp(output / name)]
    faults += [f"{name} was finished and made again" for name in sorted(set(finished) - set(kept))]
    return KillRound(
        route=expected.route.name,
        moment=moment,
        share=moment / expected.seconds,
        victim=killed,
        kept=len(kept),
        made=len(shards) - len(kept),
        faults=tuple(faults),
    )


def start_and_wait(command: list[str], seconds: float) -> "subprocess.Popen[bytes]":
    """Start the command, and wait so many seconds or until it ends."""
    process, end = start(command), time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    return process


def kill(process: "subprocess.Popen[bytes]", children: list[int], victim: str, rng: random.Random) -> str:
    """Send SIGKILL. Returns a description of the victim."""
    if victim == "worker" and children:
        os.kill(rng.choice(children), signal.SIGKILL)
        return "worker"
    if victim == "launcher":
        process.kill()
        return "launcher"
    os.killpg(process.pid, signal.SIGKILL)
    return "run" if victim == "run" else "run (no worker)"


def ends_soon(pid: int) -> bool:
    """True if the process ends within ten seconds."""
    deadline = time.monotonic() + 10
    while (state := read_bytes(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1]) not in (
        [],
        [b"Z"],
    ):
        if time.monotonic() > deadline:
            return bool(state == [b"X"])
        time.sleep(0.02)
    return True


def run_to_the_end(command: list[str]) -> list[int]:
    """Run the command until it succeeds, at most ATTEMPTS times. Returns its exit statuses."""
    statuses = []
    for _ in range(ATTEMPTS):
        process = start(command)
        try:
            statuses.append(process.wait(TIMEOUT_SECONDS))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            statuses.append(process.wait())
        if not statuses[-1]:
            break
    return statuses


def finished_shards(output: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each shard that the run has noted as finished."""
    notes = [path.stem for path in (output / "unfinished").glob("*.json") if path.name != "plan.json"]
    noted = [name for name in notes if "%2F" not in name]  # of shards, not of the sorted parts before them
    if (output / "manifest.json").exists():
        noted += [path.name for path in output.iterdir() if path.is_file() and path.name not in LISTS]
    return {name: stamp(output / name) for name in noted}


def stamp(path: Path) -> tuple[int, int]:
    """Inode and time of modification: they change when the file is written again with the same bytes."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def contents(directory: Path) -> dict[str, bytes]:
    """The bytes of all files below the directory, by name."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def differences(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """A line for each file that is missing, unexpected or has other bytes."""
    faults = [f"{name} is missing" for name in expected if name not in found]
    faults += [f"{name} is unexpected" for name in found if name not in expected]
    faults += [f"{name} differs" for name in expected if found.get(name, expected[name]) != expected[name]]
    return faults


def all_rounds(
    routes: Sequence[Route], rounds: int, seed: int, place: Path, parts: int, part_bytes: int
) -> Iterator[KillRound]:
    """The rounds: routes and victims in turn, moments spread over each route's duration."""
    rng = random.Random(seed)
    inputs = make_parts(place, parts, part_bytes)
    known = [run_undisturbed(route, inputs, place / f"undisturbed-{n}") for n, route in enumerate(routes)]
    turns = -(-rounds // len(routes))
    order = [rng.sample(range(turns), turns) for _ in routes]  # the order of the stretches of the duration
    for number in range(rounds):
        turn, which = divmod(number, len(routes))
        share = (order[which][turn] + rng.random()) / turns
        victim = VICTIMS[turn % len(VICTIMS)]
        yield kill_and_resume(known[which], inputs, place / f"round-{number}", share, victim, rng)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.kills", description=__doc__)
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
        results = all_rounds(routes, flags.rounds, flags.seed, Path(place), flags.parts, flags.part_bytes)
        for number, one in enumerate(results, 1):
            print(f"{number:>5}  {one}", flush=True)
            faulty += bool(one.faults)
    print(f"{flags.rounds} kills, seed {flags.seed}: {flags.rounds - faulty} times the same files")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
