"""A worker that plays a machine of its own: worker_of_a_machine.py FOLDERS WORDS...

FOLDERS: the output directories of the machines, by rank, joined by ":". Rank 1 adds the words of the variable
OTHER_WORDS to its command line.
"""

import os
import sys

from trainer.__main__ import run
from trainer.workers.launchers import find_rank


def main() -> int:
    """Run the trainer with this machine's directory and words."""
    rank, _ = find_rank()
    for name in (
        "LOCAL_RANK",
        "HOROVOD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "SLURM_LOCALID",
    ):
        if name in os.environ:
            os.environ[name] = "0"  # the first worker of its machine, which writes the machine's directory
    words = [*sys.argv[2:], f"--output-dir={sys.argv[1].split(':')[rank]}"]
    if rank == 1:
        words += os.environ.get("OTHER_WORDS", "").split()
    sys.argv[1:] = words
    return run()


if __name__ == "__main__":
    sys.exit(main())
