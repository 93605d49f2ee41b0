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
    """All workers stop at this micro-batch, because a signal has asked one of them to stop. This is not an
    error.
    """


class ReportedError(TrainerError):
    """All workers stop for a reason that one of them has already printed. Has no message."""

    def __init__(self, exit_status: int) -> None:
        super().__init__()
        self.exit_status = exit_status


_OWN = ("bertdata", "schemas", "trainer")


@contextmanager
def name_missing_extra(package: str, extra: str) -> Iterator[None]:
    """Turn an ImportError in the block into MissingExtraError, with the missing package and how to install
    it.

    package: package to name if the error names none. Errors from this project's own imports are not changed.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or package).partition(".")[0]
        if missing in _OWN:
            raise
        name = package if missing == package.replace("-", "_") else missing
        raise MissingExtraError(f"{name} is not installed ({error}); {install_extra(extra)}") from None
