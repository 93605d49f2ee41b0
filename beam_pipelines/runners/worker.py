"""A worker process of a local run (``python -m beam_pipelines.runners.worker``)."""

import os
import signal
import sys
import threading
import time
from contextlib import redirect_stderr
from types import FrameType

from beam_pipelines.report.logs import shown_warnings
from beam_pipelines.runners.beam_import import import_beam

LAUNCHER = "BERTDATA_LAUNCHER"
"""The environment variable with the launcher's pid; ``getppid`` is too late where the launcher died early."""

_CHECKS_PER_SECOND = 20


def main() -> None:
    signal.signal(signal.SIGINT, _exit_silently)
    threading.Thread(target=_exit_with, args=[int(os.environ[LAUNCHER])], daemon=True).start()
    # Before Beam is imported: Beam sets up logging of its own where it finds none.
    with shown_warnings(sys.stderr):
        import_beam()
        from apache_beam.runners.worker import sdk_worker_main

        # Beam prints the traceback of every error and also sends it to the runner, which shows that one.
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
            sdk_worker_main.main(sys.argv)


def _exit_with(launcher: int) -> None:
    """Exit as soon as the launcher is gone, so that the next run has the files to itself."""
    while os.getppid() == launcher:
        time.sleep(1 / _CHECKS_PER_SECOND)
    os._exit(1)


def _exit_silently(signum: int, frame: FrameType | None) -> None:
    """Exit on Ctrl-C without a message: the launcher gets the signal too, reports it and cleans up."""
    os._exit(0)


if __name__ == "__main__":
    main()
