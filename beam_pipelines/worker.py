"""``python -m beam_pipelines.worker``: Beam's worker process for a local run, started by its runner."""

import os
import sys
from contextlib import redirect_stderr

from beam_pipelines.logs import show_warnings
from beam_pipelines.runners import load_beam


def main() -> None:
    show_warnings()  # before Beam loads: it sets up logging of its own where it finds none
    load_beam()
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints the traceback of every error, and sends it to the runner as well: that one we show.
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
