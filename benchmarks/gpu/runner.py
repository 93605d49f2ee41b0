"""Runs the steps of a stage. Each step is a process with a time limit, whose output is kept in files."""

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

from benchmarks.gpu.figures import Figures, file_size, read_figures
from benchmarks.gpu.summary import summarise
from benchmarks.processes import list_descendants

AT_ONCE = 4
"""Number of steps that may run at the same time."""

STARTED = "BERTDATA_BENCHMARK_STARTED"
"""Environment variable with the time at which the process of a step was started, in seconds since 1970."""

TAIL_LINES = 6
"""Number of lines of a failed step's error output that are shown in the summary and in the figures file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkStep:
    """A step of a stage: a process that tests or measures something.

    seconds: time limit of the process.
    needs: number of seconds that the stage must have left. If it has less, the step is left out.
    together: True if the step measures no time, so that it may run at the same time as its neighbours.
    environment: additional environment variables.
    """

    name: str
    command: Sequence[str]
    seconds: float
    needs: float = 5.0
    together: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkStage:
    """A stage of the benchmark, whose steps run one after another.

    seconds: time limit of all steps together.
    absent: steps that this device cannot run, each with the reason.
    """

    name: str
    seconds: float
    steps: Sequence[BenchmarkStep]
    absent: Sequence[tuple[str, str]] = ()


ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
"""Beginning of the line in which Python names an error. torch's compiler prints more lines after this line.
"""


def run_stage(stage: BenchmarkStage, folder: Path, context: dict[str, str]) -> bool:
    """Run all steps of a stage, even if some fail.

    Returns False if a step failed, took too long, or was left out for lack of time.

    context: name of the device and version of torch.
    """
    deadline = time.monotonic() + stage.seconds

    def run(step: BenchmarkStep) -> bool:
        """Run a step, and return True if it succeeded."""
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
        Figures(folder=folder, stage=stage.name, step=name, context=context).add_absent(name, reason)
    return all(outcomes)


def run_step(step: BenchmarkStep, figures: Figures, left: float) -> bool:
    """Run a step, write how it ended, and print this in one line. Returns True if the step succeeded.

    left: number of seconds that the stage has left.
    """
    title = f"{figures.stage}: {step.name}"
    if left < step.needs:
        _print_line(f"{title}: left out")
        why = f"needs {step.needs:.0f} s, the stage has {max(left, 0):.0f} s left"
        figures.add_end("left out", 0.0, error=why)
        return False
    logs = figures.folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{figures.stage}-{step.name.replace(' ', '-').replace('/', '-')}"
    limit, start = min(step.seconds, left), time.monotonic()
    before = file_size(figures.folder)
    status, code = run_process(step, log, limit)
    seconds = time.monotonic() - start
    _print_line(f"{title}: {status} in {seconds:.0f} s")
    added = read_figures(figures.folder, before)
    for line in summarise(one for one in added if one["step"] == step.name)[1:]:
        _print_line(line)
    if status == "done":
        figures.add_end(status, seconds, log=log.name)
        return True
    limits = f" (limit {limit:.0f} s)" if status == "timed out" else ""
    figures.add_end(status, seconds, log=log.name, exit_status=code, error=f"{_find_tail(log)}{limits}")
    return False


def run_process(step: BenchmarkStep, log: Path, limit: float) -> tuple[str, int]:
    """Run a step's command. Its output is written to the files LOG.out and LOG.err.

    At the time limit the process is killed with all its children. Returns a word for how it ended, and its
    exit status.

    log: path of the two files without the endings.
    limit: time limit in seconds.
    """
    with open(f"{log}.out", "wb") as out, open(f"{log}.err", "wb") as err:
        process = subprocess.Popen(
            list(step.command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **step.environment, STARTED: str(time.time())},
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
    """Make the signal SIGTERM, which the program ``timeout`` sends, also end the running steps.

    A step that kept running would distort later measurements.
    """

    def kill_children(*_: object) -> None:
        """Kill all children of this process and exit."""
        for child in list(list_descendants(os.getpid())):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, kill_children)


def kill_tree(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process, its process group, and those of its children that are in other process groups."""
    children = list(list_descendants(process.pid))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    process.wait()


def _find_tail(log: Path) -> str:
    """Return the last lines of a step's error output, starting at the line that names the error.

    If there is no error output, the last lines of the standard output are returned.

    log: path of the two files without the endings.
    """
    for kind in ("err", "out"):
        text = Path(f"{log}.{kind}").read_text(encoding="utf-8", errors="replace")
        if lines := [line for line in text.splitlines() if line.strip()]:
            errors = [line for line in lines[:-TAIL_LINES] if ERROR.match(line)]
            return "\n".join([*errors[-1:], *lines[-TAIL_LINES:]])
    return "no output"


def _print_line(line: str) -> None:
    """Print a line at once, so that it appears in a log while the next step runs."""
    print(f"benchmarks.gpu: {line}", file=sys.stderr, flush=True)
