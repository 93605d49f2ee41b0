"""Errors of training. Their base classes are in bertdata.errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.errors import BertDataError, DataError, MissingExtraError, install_extra


class TrainerError(BertDataError):
    """Training cannot continue."""


class NotFiniteError(TrainerError):
    """A loss, gradient or weight is infinite or not a number. The message names the update."""


class WorkerLost(TrainerError):
    """Another worker died or stopped responding. The message names its rank."""


class CheckpointError(DataError):
    """A checkpoint is damaged or belongs to another run. The message names the file."""


class StopRequested(Exception):
    """A signal has asked a worker to stop, so all workers stop at this micro-batch. This is not an error."""


class ReportedError(TrainerError):
    """All workers stop for a reason that one worker has already printed. Has no message."""

    def __init__(self, exit_status: int) -> None:
        super().__init__()
        self.exit_status = exit_status


_OWN = ("bertdata", "schemas", "trainer")


@contextmanager
def name_missing_extra(package: str, extra: str) -> Iterator[None]:
    """Turn an ImportError in the block into a MissingExtraError, which says how to install the missing
    package.

    An ImportError for a module of this project is not changed.
    package: the package to name if the ImportError does not name it.
    extra: the extra of this project that installs the package.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        if missing in _OWN:
            raise
        name = package if missing == package.replace("-", "_") else missing
        raise MissingExtraError(f"{name} is not installed ({error}); {install_extra(extra)}") from None
