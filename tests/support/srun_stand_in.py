"""A launcher that starts workers as Slurm's srun does.

Usage: ``srun_stand_in.py COUNT PROGRAM ARGUMENTS...``.

It sets srun's environment variables, forwards the signals that srun's manual lists, and exits with the
highest status of its workers.
"""

import os
import signal
import subprocess
import sys
from types import FrameType


def main() -> int:
    """Start the workers and wait for them."""
    count, command = int(sys.argv[1]), sys.argv[2:]
    workers = list[subprocess.Popen[bytes]]()

    def forward(number: int, _: FrameType | None) -> None:
        for worker in workers:
            worker.send_signal(number)

    passed_on = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGCONT)
    for number in passed_on:
        signal.signal(number, forward)
    for rank in range(count):
        variables = {
            "SLURM_JOB_ID": os.getpid(),
            "SLURM_STEP_ID": 0,
            "SLURM_PROCID": rank,
            "SLURM_LOCALID": rank,
            "SLURM_NTASKS": count,
            "SLURM_STEP_NUM_TASKS": count,
            "SLURM_STEP_NUM_NODES": 1,
            "SLURM_STEP_NODELIST": "localhost",
        }
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        workers.append(subprocess.Popen(command, env=environment))
    statuses = [worker.wait() for worker in workers]
    return max(status if status >= 0 else 128 - status for status in statuses)


if __name__ == "__main__":
    sys.exit(main())
