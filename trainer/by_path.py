"""A worker of ``--dist``, started by this file's path: it finds the packages where its launcher found them.

``python -m trainer`` would look into the working directory first, where a user may have a trainer.py.
"""

import os
import sys

_PATHS = "BERTDATA_PATHS"  # as trainer.workers.launch names it, which cannot be imported yet


def run() -> int:
    """Run the trainer's command."""
    sys.path[:] = os.environ[_PATHS].split("\n")
    from trainer.__main__ import run as run_trainer

    return run_trainer()


if __name__ == "__main__":
    sys.exit(run())
