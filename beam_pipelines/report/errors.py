"""Recovery of the original error of a worker from Beam's exception."""

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
"""Part of Beam's message when a worker process is gone."""


@contextmanager
def add_path_to_errors(path: str) -> Iterator[None]:
    """Add the path of the processed file to an exception that is not a BertDataError.

    The message of a BertDataError contains the path already.
    """
    try:
        yield
    except BertDataError:
        raise
    except Exception as error:
        raise RuntimeError(f"{path}: {type(error).__name__}: {error}") from error


def find_original_error(error: Exception) -> BaseException:
    """Return the BertDataError or KeyboardInterrupt behind Beam's exception, else Beam's exception."""
    if was_interrupted(error):
        return KeyboardInterrupt()
    if WORKER_DIED in str(error) or type(error).__name__ == "KilledWorker":
        return WorkerDied()
    return recover_error(error) or _recover_service_error(error) or error


def find_first_line(error: BaseException) -> str:
    """Return the first non-empty line of an error's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def was_interrupted(error: BaseException | None) -> bool:
    """Return True if Ctrl-C caused the error.

    If a worker is a thread of this process, Beam raises a different exception after the KeyboardInterrupt.
    """
    return error is not None and (isinstance(error, KeyboardInterrupt) or was_interrupted(error.__context__))


def recover_error(error: Exception) -> BertDataError | None:
    """Return the BertDataError that a worker raised, or None.

    Beam raises either a copy of it, or an exception whose message contains the worker's traceback.
    """
    if isinstance(error, BertDataError):
        return type(error)(_BEAM_NOTE.sub("", str(error)))
    if not (found := _WORKER_ERROR.findall(str(error))):
        return None
    name, message = found[-1]
    return getattr(errors, name, BertDataError)(_BEAM_NOTE.sub("", message))


def _recover_service_error(error: Exception) -> BertDataError | None:
    """Return a one-line error for a lost job server, a Google Cloud error or a failed Dataflow job.

    None for anything else.
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
