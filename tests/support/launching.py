"""Start several workers as users do, and report how they end."""

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.support.commands import Outcome
from tests.support.fork_server import forking_python
from tests.support.paths import ROOT

HOROVODRUN = pytest.param("horovodrun", marks=pytest.mark.horovod)
"""The launcher as a parameter: its tests are left out where Horovod could not be built."""


def command_line(launcher: str, workers: int, *script: object, python: str | None = None) -> list[str]:
    """The command that starts that many workers of a Python script here; alone: one, without a launcher.

    python: by default the fork server's. Programs that use CUDA need a Python of their own: a process forked
    from one that has initialised CUDA, as a backward pass does, cannot use it.
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
    """Start the workers and wait for their end.

    meanwhile is called once they are started. All are killed after that many seconds. python: as in
    ``command_line``.
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
