"""What went wrong in a worker, found in what Beam makes of it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from bertdata import errors
from bertdata.errors import BertDataError
from bertdata.io.process_pool import WorkerDied

_BEAM_NOTE = re.compile(r"( \[while running '[^\n]*'\])+$")
_WORKER_ERROR = re.compile(r"^bertdata\.errors\.(\w+): (.*)$", re.MULTILINE)


WORKER_DIED = "Channel closed prematurely"
"""What Beam says where it misses a worker."""


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Let an error that is none of our own name the element it happened at."""
    try:
        yield
    except BertDataError:
        raise
    except Exception as error:
        raise RuntimeError(f"{path}: {type(error).__name__}: {error}") from error


def clear_error(error: Exception) -> BaseException:
    """What Beam raised, as the rest of this project says it."""
    if was_interrupted(error):
        return KeyboardInterrupt()
    if WORKER_DIED in str(error) or type(error).__name__ == "KilledWorker":
        return WorkerDied()
    return worker_error(error) or _service_error(error) or error


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind the error: Beam makes one of its own where a worker shares this process."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or was_interrupted(error.__context__))


def worker_error(error: Exception) -> BertDataError | None:
    """Our own error in what Beam raises for one in a worker: a copy of it, or the text of its traceback."""
    if isinstance(error, BertDataError):
        return type(error)(_BEAM_NOTE.sub("", str(error)))
    if not (found := _WORKER_ERROR.findall(str(error))):
        return None
    name, message = found[-1]
    return getattr(errors, name, BertDataError)(_BEAM_NOTE.sub("", message))


def _service_error(error: Exception) -> BertDataError | None:
    """A cloud's refusal, or the end that it reports of a job, in one line."""
    if type(error).__module__.startswith(("google.api_core.", "google.auth.")):
        return BertDataError(f"Google Cloud refuses: {' '.join(str(error).split())}")
    if type(error).__name__ == "DataflowRuntimeException":
        return BertDataError(" ".join(str(error).split()))
    return None
