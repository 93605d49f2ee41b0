"""Main program of a worker process on this machine (``python -m beam_pipelines.runners.worker``)."""

import os
import signal
import sys
import threading
import time
from contextlib import redirect_stderr
from types import FrameType

from beam_pipelines.report.logs import show_warnings
from beam_pipelines.runners.beam_import import import_beam

LAUNCHER = "BERTDATA_LAUNCHER"
"""Environment variable with the process id of the launching process.

The worker could not find this id with ``getppid``. If the launcher died before the call, ``getppid`` would
return the id of another process.
"""

_CHECKS_PER_SECOND = 20


def main() -> None:
    """Run Beam's worker until the launching process stops it or has ended."""
    signal.signal(signal.SIGINT, _exit_silently)
    threading.Thread(target=_exit_after, args=[int(os.environ[LAUNCHER])], daemon=True).start()
    # Logging is configured before Beam is imported, because Beam would otherwise configure it.
    with show_warnings(sys.stderr):
        import_beam()
        from apache_beam.runners.worker import sdk_worker_main

        # Beam prints the traceback of every error, and also sends it to the runner, which prints it too. So
        # the worker prints nothing.
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            sdk_worker_main.main(sys.argv)


def _exit_after(launcher: int) -> None:
    """End this process as soon as the launching process has ended.

    Otherwise this worker could disturb the files of the next run.

    launcher: process id of the launching process.
    """
    while os.getppid() == launcher:
        time.sleep(1 / _CHECKS_PER_SECOND)
    os._exit(1)


def _exit_silently(signum: int, frame: FrameType | None) -> None:
    """End this process on Ctrl-C without a message.

    The launching process gets the same signal. It prints a message and cleans up.
    """
    os._exit(0)


if __name__ == "__main__":
    main()
