"""The program that each worker process of ``--dist`` runs. The launcher starts it by the path of this file.

Workers import from the same directories as the launcher. ``python -m trainer`` would search the working
directory first, where a user may have another file trainer.py.
"""

import os
import sys

_PATHS = "BERTDATA_PATHS"  # same as trainer.workers.launch.MODULE_PATHS, which cannot be imported yet


def run() -> int:
    """Run the trainer's command line of this worker process. Return its exit status."""
    sys.path[:] = os.environ[_PATHS].split("\n")
    from trainer.__main__ import run as run_trainer

    return run_trainer()


if __name__ == "__main__":
    sys.exit(run())
