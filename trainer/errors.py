"""What can go wrong in training and nowhere else; the tree itself is in bertdata.errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from bertdata.errors import BertDataError, DataError, MissingExtraError


class TrainerError(BertDataError):
    """Training cannot go on."""


class NotFiniteError(TrainerError):
    """A loss or gradient is infinite or not a number; the message names step and rank."""


class WorkerLost(TrainerError):
    """Another worker died or hangs; the message names its rank."""


class ReportedError(TrainerError):
    """All workers stop for a reason that rank 0 has told already."""

    def __init__(self, exit_status: int) -> None:
        super().__init__("rank 0 has said why")
        self.exit_status = exit_status


class CheckpointError(DataError):
    """A checkpoint is damaged or belongs to something else; the message names the file."""


@contextmanager
def naming_extra(package: str, extra: str) -> Iterator[None]:
    """MissingExtraError, with what to do, for an import that fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{package} is not installed ({error}); pip install 'bertdata[{extra}]'"
        ) from None
