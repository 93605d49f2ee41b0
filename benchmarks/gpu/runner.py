"""Runner of a stage's steps. Each step is a process with a time limit, whose output is kept in files."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from benchmarks.gpu.figures import Figures
from benchmarks.processes import list_descendants

AT_ONCE = 4
"""Number of steps that may run at the same time."""

TAIL_LINES = 6
"""Number of lines of a failed step's error output in its figure line and in the summary."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkStep:
    """A process of a stage.

    seconds: time limit. needs: number of seconds that must be left of the stage's time, or the step is left
        out. together: True if the step measures no time, so that it may run at the same time as the steps
        next to it.
    """

    name: str
    command: Sequence[str]
    seconds: float
    needs: float = 5.0
    together: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkStage:
    """Steps in order, and the seconds for all of them together.

    absent: pairs of step and reason, for steps that this device cannot run.
    """

    name: str
    seconds: float
    steps: Sequence[BenchmarkStep]
    absent: Sequence[tuple[str, str]] = ()


ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
"""Start of the line in which Python names an error. torch's compiler prints more lines after it."""


def run_stage(stage: BenchmarkStage, folder: Path, context: dict[str, str]) -> bool:
    """Run all steps, even if some fail. Return False if a step failed, took too long, or was left out for
    lack of time.
    """
    deadline = time.monotonic() + stage.seconds

    def run(step: BenchmarkStep) -> bool:
        return run_step(step, Figures(folder=folder, stage=stage.name, step=step.name, context=context),
                        deadline - time.monotonic())  # fmt: skip

    outcomes: list[bool] = []
    for together, steps in groupby(stage.steps, lambda step: step.together):
        if together:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                outcomes += pool.map(run, steps)
        else:
            outcomes += map(run, steps)
    for name, reason in stage.absent:
        Figures(folder=folder, stage=stage.name, step=name, context=context).absent(name, reason)
    return all(outcomes)


def run_step(step: BenchmarkStep, figures: Figures, left: float) -> bool:
    """Run a step, write its outcome, and print it in one line. left: seconds that the stage has left."""
    title = f"{figures.stage}: {step.name}"
    if left < step.needs:
        _print_line(f"{title}: left out")
        why = f"needs {step.needs:.0f} s, the stage has {max(left, 0):.0f} s left"
        figures.ended("left out", 0.0, error=why)
        return False
    logs = figures.folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{figures.stage}-{step.name.replace(' ', '-').replace('/', '-')}"
    limit, start = min(step.seconds, left), time.monotonic()
    status, code = run_process(step, log, limit)
    seconds = time.monotonic() - start
    _print_line(f"{title}: {status} in {seconds:.0f} s")
    if status == "done":
        figures.ended(status, seconds, log=log.name)
        return True
    limits = f" (limit {limit:.0f} s)" if status == "timed out" else ""
    figures.ended(status, seconds, log=log.name, exit_status=code, error=f"{_find_tail(log)}{limits}")
    return False


def run_process(step: BenchmarkStep, log: Path, limit: float) -> tuple[str, int]:
    """Run a step's command, with its output in LOG.out and LOG.err.

    Return how it ended, in a word, and its exit status. At the time limit it is killed with all its children.
    """
    with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
        process = subprocess.Popen(
            list(step.command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **step.environment},
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
            return ("failed" if code else "done"), code
        except subprocess.TimeoutExpired:
            return "timed out", -signal.SIGKILL
        finally:
            kill_tree(process)


def end_with_children() -> None:
    """Make SIGTERM, which ``timeout`` sends, also end the running steps.

    A step that keeps running would distort later measurements.
    """

    def end(*_: object) -> None:
        for child in list(list_descendants(os.getpid())):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """Kill a running process, its process group, and its children that have other process groups."""
    children = list(list_descendants(process.pid))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.wait()


def _find_tail(log: Path) -> str:
    """Return the last lines of the error output, from the line that names the error on.

    If there is no error output, return the last lines of the standard output.
    """
    for kind in ("err", "out"):
        text = Path(f"{log}.{kind}").read_text(encoding="utf-8", errors="replace")
        if lines := [line for line in text.splitlines() if line.strip()]:
            errors = [line for line in lines[:-TAIL_LINES] if ERROR.match(line)]
            return "\n".join([*errors[-1:], *lines[-TAIL_LINES:]])
    return "no output"


def _print_line(line: str) -> None:
    print(f"benchmarks.gpu: {line}", file=sys.stderr, flush=True)
