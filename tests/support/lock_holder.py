"""A second process that holds the lock of a directory."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

SECONDS = 60

HOLD = """
import os, sys
from bertdata.io.directory_lock import lock_directory
with lock_directory(sys.argv[1]):
    child = os.fork() if sys.argv[2:] == ["fork"] else os.getpid()
    if child:
        print(child, flush=True)
    sys.stdin.readline()
    if not child:
        os._exit(0)
"""


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock. child: process id of its forked child, which lives on."""

    process: "subprocess.Popen[str]"
    child: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def let_go(self) -> None:
        """Make the process release the lock and exit."""
        self.process.communicate("\n", SECONDS)

    def end(self, how: signal.Signals) -> None:
        """End the process by a signal."""
        self.process.send_signal(how)
        self.process.wait(SECONDS)


@contextmanager
def holder(folder: Path, *words: str) -> Iterator[Holder]:
    """Start a process that holds the lock. With the word ``fork`` it also forks a child."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin, process.stdout:
            yield Holder(process, int(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()
