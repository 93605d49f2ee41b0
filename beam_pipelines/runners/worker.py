"""The process of a Beam worker in a local run (``python -m beam_pipelines.runners.worker``)."""

import os
import signal
import sys
import threading
import time
from contextlib import redirect_stderr
from types import FrameType

from beam_pipelines.report.logs import show_warnings
from beam_pipelines.runners.pipeline import load_beam

LAUNCHER = "BERTDATA_LAUNCHER"
"""The environment variable with the launcher's pid: a worker may begin when its parent is gone already."""

_LOOKS_PER_SECOND = 20


def main() -> None:
    signal.signal(signal.SIGINT, _stop)
    threading.Thread(target=_end_with, args=[int(os.environ[LAUNCHER])], daemon=True).start()
    # Before Beam loads: it sets up logging of its own where it finds none.
    show_warnings(sys.stderr)
    load_beam()
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints the traceback of every error, and sends it to the runner as well: that one we show.
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        sdk_worker_main.main(sys.argv)


def _end_with(launcher: int) -> None:
    """End at once when the launcher was killed: the run that comes after it must have the files to itself."""
    while os.getppid() == launcher:
        time.sleep(1 / _LOOKS_PER_SECOND)
    os._exit(1)


def _stop(signum: int, frame: FrameType | None) -> None:
    """End at once and in silence on Ctrl-C: the launcher gets it too, tells of it and clears away."""
    os._exit(0)


if __name__ == "__main__":
    main()
