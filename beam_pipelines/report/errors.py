"""Finding the error that a worker raised, when Beam's own exception is all that the launcher gets."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bertdata import errors
from bertdata.errors import BertDataError
from bertdata.io.worker_process import WorkerDied

_BEAM_NOTE = re.compile(r"( \[while running '[^\n]*'\])+$")
_WORKER_ERROR = re.compile(r"^bertdata\.errors\.(\w+): (.*)$", re.MULTILINE)

WORKER_DIED = "Channel closed prematurely"
"""Text that Beam's message contains if a worker process has died."""


@contextmanager
def add_path_to_errors(path: str) -> Iterator[None]:
    """Return a context manager that adds the path of the processed file to an exception.

    An exception that is a BertDataError is not changed, because its message contains the path already.
    """
    try:
        yield
    except BertDataError:
        raise
    except Exception as error:
        raise RuntimeError(f"{path}: {type(error).__name__}: {error}") from error


def find_original_error(error: Exception) -> BaseException:
    """Return the error behind Beam's exception: a BertDataError, or a KeyboardInterrupt after Ctrl-C.

    If no such error is found, Beam's exception is returned.
    """
    if was_interrupted(error):
        return KeyboardInterrupt()
    if WORKER_DIED in str(error) or type(error).__name__ == "KilledWorker":
        return WorkerDied()
    return find_worker_error(error) or _find_service_error(error) or error


def find_first_line(error: BaseException) -> str:
    """Return the first non-empty line of an error's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def was_interrupted(error: BaseException | None) -> bool:
    """Return True if Ctrl-C caused the error.

    If a worker is a thread of this process, Beam raises a different exception after the KeyboardInterrupt.
    """
    return error is not None and (isinstance(error, KeyboardInterrupt) or was_interrupted(error.__context__))


def find_worker_error(error: Exception) -> BertDataError | None:
    """Return the BertDataError that a worker raised, or None if it raised something else.

    Beam raises either a copy of the error, or an exception whose message contains the worker's traceback.
    """
    if isinstance(error, BertDataError):
        return type(error)(_BEAM_NOTE.sub("", str(error)))
    if not (found := _WORKER_ERROR.findall(str(error))):
        return None
    name, message = found[-1]
    return getattr(errors, name, BertDataError)(_BEAM_NOTE.sub("", message))


def _find_service_error(error: Exception) -> BertDataError | None:
    """Return an error of one line if a job server was lost, Google Cloud refused, or a Dataflow job failed.

    Returns None for any other exception.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "RpcError" in kinds and "Call" in kinds:
        call: Any = error
        details = " ".join(str(call.details() or "").split())
        return BertDataError(f"the job server is lost: {call.code().name}: {details}")
    if type(error).__module__.startswith(("google.api_core.", "google.auth.")):
        return BertDataError(f"Google Cloud refuses: {' '.join(str(error).split())}")
    if type(error).__name__ == "DataflowRuntimeException":
        return BertDataError(" ".join(str(error).split()))
    return None
