"""Restarts by torchrun, when one of several machines leaves a run or another one joins it.

torchrun has a process on each machine, its agent. An agent that is asked to stop sends SIGTERM to its own
workers. All workers of the run then stop together, also those of the other machines. If those ended with
status 0, their agents would take the run for finished, and the machines that are left would not train on.
"""

from bertdata.errors import SettingsError
from bertdata.io.terminal import say_error
from trainer.errors import ReportedError
from trainer.workers.collective import Stopping
from trainer.workers.launchers import find_local_rank, read_number

_ENDED_FOR_RESTART = 1  # any status but 0 makes the agent start the workers again


def end_for_restart(stopping: Stopping, *, resumes: bool) -> None:
    """End this worker with an error status if torchrun should start it again, else do nothing.

    This is so if the workers have stopped because a worker of another machine was asked to, and torchrun may
    start them again. Call it when the checkpoint is saved and uploaded.
    resumes: whether the command has ``--resume``. Without it, workers that start again would be refused,
    because the run exists.
    """
    if not stopping.has_stopped or stopping.is_asked_here or not resumes or not _may_restart():
        return
    if find_local_rank() == 0:
        say_error("trainer: another machine was asked to stop: torchrun starts the workers of this one again")
    raise ReportedError(_ENDED_FOR_RESTART)


def _may_restart() -> bool:
    """Return True if torchrun started this process on one of several machines, and has restarts left."""
    try:
        machines, used, most = map(
            read_number, ("GROUP_WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS")
        )
    except SettingsError:  # another launcher
        return False
    return machines > 1 and used < most
