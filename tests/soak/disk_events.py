"""Runs a program, counts what it does to the files below a directory, and kills it at one of these events.

    BERTDATA_SOAK_EVENTS='{"below": DIRECTORY, "log": FILE, "kill_at": 17}' \\
        python -m tests.soak.disk_events bertdata create ...

An event is the opening of a file for writing, a renaming, a removal, a new directory or an fsync. All
processes of the program count together. Before event number ``kill_at`` the whole process group is killed, as
by a power cut; 0 kills nothing. The file of the log gets one byte for each event. Beside it, ``FILE.flushed``
gets a line for each fsync, which says what is safe on the disk from then on (``tests.soak.power_loss``).
"""

import json
import os
import runpy
import signal
import stat
import sys
from collections.abc import Callable
from typing import Any

VARIABLE = "BERTDATA_SOAK_EVENTS"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_EVENTS = {"os.rename": 1, "os.link": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0, "os.truncate": 0}
"""Python's audit events, and the argument that is the path."""


def count_events(below: str, log: str, kill_at: int) -> None:
    """Begin to count the events of this process, and of the processes that it forks."""
    counter = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    flushed = os.open(f"{log}.flushed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    root = os.path.realpath(below)

    def count(path: Any) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        if os.path.abspath(os.fsdecode(path)).startswith(root):
            os.write(counter, b".")
            if os.fstat(counter).st_size == kill_at:
                os.killpg(0, signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            count(arguments[0])
        elif event in _EVENTS:
            count(arguments[_EVENTS[event]])

    sys.addaudithook(hook)
    os.fsync = _logging_fsync(count, flushed)


def _logging_fsync(count: Callable[[Any], None], flushed: int) -> Callable[[Any], None]:
    """Return a function to take the place of os.fsync, which logs what is safe on the disk now."""

    def fsync(file: Any) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        count(os.readlink(f"/proc/self/fd/{descriptor}"))
        found = os.fstat(descriptor)
        line: dict[str, Any] = {"inode": found.st_ino, "size": found.st_size, "time": found.st_mtime_ns}
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(descriptor) as entries:
                line["names"] = {entry.name: entry.inode() for entry in entries}
        os.write(flushed, f"{json.dumps(line)}\n".encode())

    return fsync


def main() -> None:
    count_events(**json.loads(os.environ[VARIABLE]))
    sys.argv[:] = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
