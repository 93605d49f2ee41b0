"""What happens to a training when something ends or disturbs it, under each launcher.

    python -m tests.soak.interruptions [--launcher NAME ...] [--event NAME ...]

Each run of two workers (without a launcher: one) is disturbed once it has made some updates. Then come: how
it ended, what was saved, whether a process is left; and that ``--resume`` goes on from there. The table of
docs/reliability.md is what this prints. mpirun: the one on the path, or of ``--mpirun``.
"""

import argparse
import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bertdata.io.file_check import compute_file_md5
from tests.support.paths import ROOT
from trainer.checkpoints.checkpoint import find_checkpoints

STAND_IN = ROOT / "tests" / "support" / "srun_stand_in.py"
"""Starts workers with the variables of srun, and passes signals on as its manual says that srun does."""

AS_MACHINE = ROOT / "tests" / "soak" / "worker_of_a_machine.py"
"""Plays a machine with a directory and words of its own."""

LAUNCHERS = ("none", "dist", "torchrun", "horovodrun", "mpirun", "srun")
RUN = (
    *("--hidden-size=16", "--num-hidden-layers=1", "--num-attention-heads=2", "--intermediate-size=16"),
    *("--generated-data", "--vocab-size=100", "--max-seq-length=16", "--max-predictions-per-seq=2"),
    *("--batch-size=2", "--warmup=0", "--log-every=1", "--no-progress-bar", "--device=cpu"),
)
LONG = ("--steps=1000000", "--checkpoint-every=20")
START_SECONDS, END_SECONDS = 120.0, 60.0
UPDATES = 30  # made before the event


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """A run after its event.

    status: of the launcher, negative for a signal, None where the run went on and was then ended by SIGTERM
    to its workers. made: updates that the log held at the event. saved: updates of the checkpoints.
    """

    status: int | None
    seconds: float
    made: int
    saved: list[int]
    said: list[str]
    left: int
    resumes: bool

    def describe(self) -> str:
        """The outcome in words."""
        words = "goes on" if self.status is None else f"status {self.status} after {self.seconds:.0f} s"
        kept = self.saved[-1] if self.saved else 0
        lost = "nothing lost" if kept >= self.made else f"goes back to update {kept} of {self.made}"
        after = "" if self.resumes else "; DOES NOT RESUME"
        return f"{words}; {lost}{after}" + (f"; {self.left} LEFT" if self.left else "")


def command_line(
    launcher: str, words: list[str], mpirun: str = "mpirun", program: tuple[str, ...] = ("-m", "trainer")
) -> list[str]:
    """Return the command that starts two workers of the program with these words under the launcher."""
    python, trainer = [sys.executable], list(program)
    if launcher == "none":
        return [*python, *trainer, *words]
    if launcher == "dist":
        return [*python, *trainer, *words, "--dist", "--world-size=2"]
    if launcher == "torchrun":
        return [
            *python,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=2",
            *trainer,
            *words,
        ]
    if launcher == "horovodrun":
        hosts = (
            "localhost:2" if program[0] == "-m" else "localhost:1,127.0.0.1:1"
        )  # these count as two machines
        run = ["-m", "horovod.runner.launch", "--gloo", "-np", "2", "-H", hosts]
        return [*python, *run, *python, *trainer, *words]
    if launcher == "mpirun":
        return [mpirun, "-np", "2", *python, *trainer, *words]
    return [*python, str(STAND_IN), "2", *python, *trainer, *words]


def interrupt(launcher: str, event: str, place: Path, mpirun: str = "mpirun") -> Interrupted:
    """Start a run in the directory, let the event happen, and look at what comes of it."""
    words = ["pretrain", *RUN, *LONG, f"--output-dir={place}"]
    said = place.with_suffix(".said").open("w+b")
    piped = event == "terminal lost"
    process = subprocess.Popen(
        command_line(launcher, words, mpirun),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if piped else said,
        stderr=subprocess.STDOUT,
        env={**os.environ, **_environment()},
        start_new_session=True,
    )
    try:
        wait_until(lambda: made(place) >= UPDATES or process.poll() is not None, START_SECONDS)
        if process.poll() is not None or made(place) < UPDATES:
            said.seek(0)
            raise AssertionError(f"{launcher}: ended before the event: {said.read().decode()}")
        began, steps, before = time.monotonic(), made(place), said.seek(0, os.SEEK_END)
        EVENTS[event](process, place)
        wait_until(lambda: process.poll() is not None, 10 if event in ON else END_SECONDS)
        status, seconds = process.poll(), time.monotonic() - began
        if status is None:
            steps = made(place)
            for worker in workers_of(place):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGTERM)
            wait_until(lambda: process.poll() is not None, END_SECONDS)
        wait_until(lambda: not workers_of(place), 20)
        left = len(workers_of(place))
    finally:
        for number in [process.pid, *workers_of(place)]:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait()
    said.seek(before)
    lines = said.read().decode(errors="replace").splitlines()
    saved = sorted(find_checkpoints(str(place)))
    return Interrupted(
        status=status,
        seconds=seconds,
        made=steps,
        saved=saved,
        said=[line for line in lines if line and "step " not in line],
        left=left,
        resumes=_resumes(place, saved),
    )


def differ(launcher: str, folder: Path, mpirun: str) -> str:
    """Start two machines with other settings. Return the outcome in words."""
    places = [folder / "first", folder / "second"]
    status, said = _train(launcher, places, ["--steps=5"], mpirun, {"OTHER_WORDS": "--seed=9"})
    lines = sorted({line[line.index("error: ") :] for line in said.splitlines() if "error: " in line})
    names = any("--seed is 42 on worker 0, 9 on worker 1" in line for line in lines)
    nothing = not any(place.exists() for place in places)
    words = "flag, workers and both values named" if names else "NOT NAMED"
    return f"status {status}; {words}; {'nothing made' if nothing else 'SOMETHING MADE'}"


def reorder(launcher: str, folder: Path, mpirun: str) -> str:
    """Train on two machines, take the disk of one, resume in the other order. Return the outcome in words."""
    places = [folder / "first", folder / "second"]
    _train(launcher, places, ["--steps=5"], mpirun)
    shutil.rmtree(places[0])
    status, _ = _train(launcher, places[::-1], ["--steps=8", "--resume"], mpirun)
    saved = [sorted(find_checkpoints(str(place))) for place in places]
    weights = [
        compute_file_md5(str(find_checkpoints(str(place))[8] / "model.safetensors"))
        for place in places
        if saved == [[5, 8]] * 2
    ]
    whole = len(weights) == 2 and len(set(weights)) == 1
    return f"status {status}; {'both machines hold updates 5 and 8, equal' if whole else f'LOST: {saved}'}"


def _train(
    launcher: str, places: list[Path], words: list[str], mpirun: str, more: Mapping[str, str] | None = None
) -> tuple[int, str]:
    program = (str(AS_MACHINE), ":".join(map(str, places)))
    command = command_line(launcher, ["pretrain", *RUN, *words], mpirun, program)
    done = subprocess.run(
        command,
        env={**os.environ, **_environment(), **(more or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=START_SECONDS,
    )
    return done.returncode, done.stdout


def _environment() -> dict[str, str]:
    """Return the variables of every started command."""
    variables = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    for program in ("OMPI", "PRTE"):  # Open MPI refuses to start as root without these
        variables |= {f"{program}_ALLOW_RUN_AS_ROOT": "1", f"{program}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return variables


def _resumes(place: Path, saved: list[int]) -> bool:
    """True if the run goes on from its newest checkpoint, whose updates its table holds without a gap."""
    kept = saved[-1] if saved else 0
    words = ["pretrain", *RUN, f"--steps={kept + 2}", f"--output-dir={place}", "--resume"]
    command = [sys.executable, "-m", "trainer", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.returncode == 0 and _steps(place) == list(range(1, kept + 3))


def _steps(place: Path) -> list[int]:
    try:
        with (place / "training.csv").open(encoding="utf-8") as file:
            return [int(row["step"]) for row in csv.DictReader(file) if row["step"]]
    except FileNotFoundError:
        return []


def made(place: Path) -> int:
    """The updates that the run's table holds."""
    return len(_steps(place))


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until it is so, at most that long."""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.1)


def workers_of(place: Path) -> list[int]:
    """The processes of this run's trainers, not of their launcher, in the order of their start."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            is_ours = f"--output-dir={place}" in words and "python" in words[0]
            launches = ("torch.distributed.run", "horovod.runner.launch", str(STAND_IN))
            if is_ours and not any(word in words for word in launches):
                found.append(int(folder.name))
    children = [one for one in found if _parent(one) in found]
    return sorted(children or found)


def _parent(number: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


Process = subprocess.Popen[bytes]


def _send(number: signal.Signals) -> Callable[[Process, Path], None]:
    return lambda process, place: process.send_signal(number)


def _to_worker(number: signal.Signals) -> Callable[[Process, Path], None]:
    return lambda process, place: os.kill(workers_of(place)[-1], number)


def _lose_terminal(process: Process, place: Path) -> None:
    assert process.stdout is not None
    process.stdout.close()


EVENTS: dict[str, Callable[[Process, Path], None]] = {
    "TERM": _send(signal.SIGTERM),
    "HUP": _send(signal.SIGHUP),
    "USR1": _send(signal.SIGUSR1),
    "INT": _send(signal.SIGINT),
    "USR2": _send(signal.SIGUSR2),
    "USR1 to a worker": _to_worker(signal.SIGUSR1),
    "KILL of a worker": _to_worker(signal.SIGKILL),
    "KILL of the launcher": _send(signal.SIGKILL),
    "terminal lost": _lose_terminal,
}
MACHINES = {"other settings on one worker": differ, "machine order changed, one disk lost": reorder}
"""Events of two machines, each with a directory of its own."""

ON = ("USR1", "USR1 to a worker", "terminal lost")
"""The events after which a training may go on."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", nargs="*", choices=LAUNCHERS, default=LAUNCHERS)
    parser.add_argument("--event", nargs="*", choices=(*EVENTS, *MACHINES), default=(*EVENTS, *MACHINES))
    parser.add_argument("--mpirun", default=shutil.which("mpirun"), help="its path")
    given = parser.parse_args()
    for launcher in given.launcher:
        if launcher == "mpirun" and given.mpirun is None:
            print("mpirun: not on the path")
            continue
        for event in given.event:
            with tempfile.TemporaryDirectory() as folder:
                if event in MACHINES:
                    if launcher not in ("none", "dist"):  # these have one command line and one machine
                        found_line = MACHINES[event](launcher, Path(folder), given.mpirun)
                        print(f"{launcher}, {event}: {found_line}", flush=True)
                    continue
                found = interrupt(launcher, event, Path(folder, "run"), given.mpirun)
                print(f"{launcher}, {event}: {found.describe()}", flush=True)
                for line in found.said:
                    print(f"    {line}")


if __name__ == "__main__":
    main()
