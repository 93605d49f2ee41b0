"""The main program of a local run's worker process (``python -m beam_pipelines.runners.worker``)."""

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
"""Environment variable with the launcher's process id.

The worker cannot call ``getppid`` instead. If the launcher has died early, ``getppid`` returns the id of
another process.
"""

_CHECKS_PER_SECOND = 20


def main() -> None:
    """Run Beam's worker until the launcher stops it or is gone."""
    signal.signal(signal.SIGINT, _exit_silently)
    threading.Thread(target=_exit_with, args=[int(os.environ[LAUNCHER])], daemon=True).start()
    # This comes before Beam's import, because Beam configures logging if it is not configured yet.
    with show_warnings(sys.stderr):
        import_beam()
        from apache_beam.runners.worker import sdk_worker_main

        # Beam prints the traceback of every error and also sends it to the runner, which prints it. So
        # nothing is printed here.
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            sdk_worker_main.main(sys.argv)


def _exit_with(launcher: int) -> None:
    """Exit as soon as the launcher has ended, so that this worker cannot disturb the next run's files."""
    while os.getppid() == launcher:
        time.sleep(1 / _CHECKS_PER_SECOND)
    os._exit(1)


def _exit_silently(signum: int, frame: FrameType | None) -> None:
    """Exit on Ctrl-C without a message. The launcher also gets the signal, prints a message and cleans up."""
    os._exit(0)


if __name__ == "__main__":
    main()
