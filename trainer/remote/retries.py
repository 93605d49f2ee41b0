"""Repeating requests to a store, which fail now and then."""

import time
from collections.abc import Callable
from typing import TypeVar

from bertdata.errors import MissingExtraError, MissingInputError, StorageError

Result = TypeVar("Result")

ATTEMPTS = 6
"""Number of times that a request is made before its error counts. The clients of S3 and Google's store repeat
each of their own requests too.
"""
FIRST_PAUSE_SECONDS = 0.5
"""Pause after the first failure. Each later pause is twice as long as the one before."""
_LONGEST_PAUSE_SECONDS = 30.0
_REFUSED = ("permission denied", "no credentials")
"""Words in the message of an error that a repetition would not change."""


def repeat(work: Callable[[], Result], *, attempts: int | None = None) -> Result:
    """Call a function that makes requests, again after each StorageError, and return its result.

    An error that another attempt would not change is raised at once: a missing file or bucket, a missing
    package, a refused permission.
    attempts: number of calls before the error is raised. None: ATTEMPTS.
    """
    pause = FIRST_PAUSE_SECONDS
    for left in reversed(range(ATTEMPTS if attempts is None else attempts)):
        try:
            return work()
        except (MissingInputError, MissingExtraError):
            raise
        except StorageError as error:
            if left == 0 or is_refused(error):
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    raise AssertionError("attempts must be at least 1")


def is_refused(error: Exception) -> bool:
    """Return True if the store has refused the request, so that a repetition would be refused too."""
    return isinstance(error, MissingInputError) or any(words in str(error) for words in _REFUSED)
