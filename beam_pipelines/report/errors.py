"""Recover a worker's error from Beam's exception."""

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
"""Part of Beam's message when a worker is gone."""


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Add the element's path to errors that are not our own. Ours name it already."""
    try:
        yield
    except BertDataError:
        raise
    except Exception as error:
        raise RuntimeError(f"{path}: {type(error).__name__}: {error}") from error


def clear_error(error: Exception) -> BaseException:
    """Turn Beam's exception into one of ours where its cause is known, else return it."""
    if was_interrupted(error):
        return KeyboardInterrupt()
    if WORKER_DIED in str(error) or type(error).__name__ == "KilledWorker":
        return WorkerDied()
    return worker_error(error) or _service_error(error) or error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message that holds something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def was_interrupted(error: BaseException | None) -> bool:
    """True where Ctrl-C caused the error: Beam raises its own where a worker shares this process."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or was_interrupted(error.__context__))


def worker_error(error: Exception) -> BertDataError | None:
    """Recover our error that a worker raised: Beam re-raises a copy, or quotes its traceback."""
    if isinstance(error, BertDataError):
        return type(error)(_BEAM_NOTE.sub("", str(error)))
    if not (found := _WORKER_ERROR.findall(str(error))):
        return None
    name, message = found[-1]
    return getattr(errors, name, BertDataError)(_BEAM_NOTE.sub("", message))


def _service_error(error: Exception) -> BertDataError | None:
    """One line for an error of Google Cloud, a Dataflow job that failed, or a lost job server."""
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
