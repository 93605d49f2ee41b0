"""Start of several workers with the launchers that users have, and a report of how they end."""

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.support.commands import Outcome
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT

HOROVODRUN = pytest.param("horovodrun", marks=pytest.mark.horovod)
"""The launcher as a pytest parameter, skipped where Horovod could not be built."""


def command_line(launcher: str, workers: int, *script: object, python: str | None = None) -> list[str]:
    """Return the command that starts this many workers of a Python script on this machine.

    launcher: the name of a launcher, or ``alone`` for one worker without a launcher.
    python: default: the fork server's executable. Programs that use CUDA need a real Python, because a
        process forked after CUDA was initialised, as by a backward pass, cannot use CUDA.
    """
    python = python or forking_python()
    words = list(map(str, script))
    if launcher == "alone":
        return [python, *words]
    if launcher == "torchrun":
        return [
            python,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={workers}",
            *words,
        ]
    assert launcher == "horovodrun"
    horovodrun = [python, "-m", "horovod.runner.launch"]
    return [*horovodrun, "--gloo", "-np", str(workers), "-H", f"localhost:{workers}", python, *words]


def launch(
    launcher: str,
    workers: int,
    *script: object,
    seconds: float = 60,
    python: str | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Outcome:
    """Start the workers and wait for their end. All are killed after ``seconds``.

    python: the interpreter, by default the fork server's executable.
    meanwhile: called once the workers are started.
    """
    process = subprocess.Popen(
        command_line(launcher, workers, *script, python=python),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        meanwhile()
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return Outcome(process.returncode, out, err)
