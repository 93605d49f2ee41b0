"""Requests to a store are repeated unless another attempt would change nothing."""

import pytest

from bertdata.errors import BertDataError, MissingInputError, StorageError
from trainer.remote import retries


class Requests:
    """A function that raises these errors, one at a call, and then returns its number of calls."""

    def __init__(self, *errors: BertDataError) -> None:
        self.errors, self.calls = [*errors], 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.0)


def test_a_failed_request_is_repeated():
    assert retries.repeat(Requests(StorageError("timed out"), StorageError("timed out"))) == 3


def test_the_last_error_counts_after_all_attempts():
    requests = Requests(*(StorageError(f"attempt {number}") for number in range(1, 10)))
    with pytest.raises(StorageError, match="attempt 4"):
        retries.repeat(requests, attempts=4)


@pytest.mark.parametrize(
    "error",
    [MissingInputError("gs://b: there is no bucket b"), StorageError("gs://b: permission denied (403)")],
)
def test_what_a_repetition_would_not_change_is_raised_at_once(error):
    requests = Requests(error)
    with pytest.raises(type(error)):
        retries.repeat(requests)
    assert requests.calls == 1
