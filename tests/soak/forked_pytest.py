"""Pytest in forked processes, which have the third-party packages already imported.

The tests of a changed file run in a new process each time, because the file must be imported anew. To import
PyTorch and Beam takes some seconds, so the process is a fork of one that has imported them, but no module of
this repository.
"""

import importlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

_PRELOADED = (
    "numpy",
    "hypothesis",
    "h5py",
    "pyarrow.parquet",
    "scipy.optimize",
    "tokenizers",
    "safetensors.torch",
    "torch.utils.checkpoint",
    "apache_beam",
)
_MEMORY_BYTES = 6 << 30
"""A change may ask for memory without end."""


def preload_packages() -> None:
    """Import the third-party packages that the tests use, if they are installed."""
    os.environ.update(OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")  # threads do not survive a fork
    for name in _PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def run_in_fork(work: Callable[[], int], root: Path, log: Path, seconds: float) -> int | None:
    """Run a function in a forked process whose directory is the root. Return what it returned.

    Returns None if the process did not end in time. It is killed then, with all processes that it started.

    work: function that is run. A number above 255, or an exception, counts as 255.
    log: file for everything that the process prints.
    seconds: the longest time that the process may take.
    """
    child = os.fork()
    if child == 0:
        _become_child(work, root, log)
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _kill_group(child)  # what the tests left running
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            _kill_group(child)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


def _become_child(work: Callable[[], int], root: Path, log: Path) -> None:
    """Run the function in this process, which is a fork. Never returns."""
    status = 255
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(root)
        nowhere, output = (
            os.open(os.devnull, os.O_RDONLY),
            os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
        for number, opened in enumerate((nowhere, output, output)):
            os.dup2(opened, number)
        sys.path.insert(0, str(root))
        os.environ["PYTHONPATH"] = str(root)  # for processes that the tests start
        status = min(work(), 255)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class _ChosenTests:
    """A plugin that keeps only the chosen tests, in their order."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._rank = {name: rank for rank, name in enumerate(chosen)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._rank]
        items.sort(key=lambda item: self._rank[item.nodeid])


def run_chosen_tests(chosen: Sequence[str]) -> int:
    """Run tests in this process until one fails. Return pytest's exit status.

    chosen: ids of the tests, the first to run first.
    """
    files = dict.fromkeys(name.partition("::")[0] for name in chosen)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=line"]
    return int(pytest.main([*options, *files], plugins=[_ChosenTests(chosen)]))
