"""Beam's job service and worker pool, such as a user may already have running."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.paths import ROOT

_SECONDS = 120


@contextmanager
def running_job_service(place: Path) -> Iterator[str]:
    """Run Beam's ``local_job_service_main`` during the block. Yields its address."""
    port = place / "port"
    words = ["--port_file", str(port), "--staging_dir", str(place / "staging")]
    with _program("apache_beam.runners.portability.local_job_service_main", *words):
        _wait(port.exists)
        yield f"localhost:{port.read_text()}"


@contextmanager
def running_worker_pool() -> Iterator[tuple[str, int]]:
    """Run a worker pool, which starts a process for each requested worker.

    Yields its address and process id.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with _program("apache_beam.runners.worker.worker_pool_main", "--service_port", str(port)) as process:
        _wait(lambda: _listens(port))
        yield f"localhost:{port}", process.pid


@contextmanager
def _program(module: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    # The pool calls its workers' program "python".
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, "the program did not start"
        time.sleep(0.1)
