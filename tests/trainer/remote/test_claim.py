"""Which of several runs has the claim on a directory at a URL."""

from collections.abc import Iterator

import pytest

from bertdata.errors import DatasetError
from bertdata.io import storage
from tests.support.failing_memory import FailingFileSystem, failing_memory
from trainer.remote import claim, retries
from trainer.remote.claim import Claim

URL = "failing://bucket/run"
LOCK = f"{URL}/unfinished/run.lock"


@pytest.fixture(autouse=True)
def store(monkeypatch) -> Iterator[type[FailingFileSystem]]:
    """An empty store, in which a claim is soon renewed and soon stale."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(claim, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(claim, "STALE_SECONDS", 0.2)
    with failing_memory() as kind:
        yield kind


def write_claim(token: str) -> None:
    with storage.open_output(LOCK) as file:
        file.write(b'{"owner": "process 1 on elsewhere", "token": "%s"}' % token.encode())


def test_a_claim_taken_over_is_found_before_the_next_renewal(monkeypatch):
    monkeypatch.setattr(claim, "RENEW_SECONDS", 100)
    calls = list[str]()
    mine = Claim(URL, print, lambda: calls.append("lost"))
    mine.take()
    assert mine.check()
    write_claim("other")
    assert not mine.check()
    assert (mine.is_lost, calls) == (True, ["lost"])
    mine.release()
    assert b"other" in storage.read_bytes(LOCK)


def test_a_claim_is_not_removed_if_another_run_has_just_taken_it_over(monkeypatch):
    """Two runs have waited until the claim of a killed run is stale, and the other one is a little faster."""
    write_claim("killed")
    mine = Claim(URL, print, lambda: None)
    wait = Claim._wait_until_stale

    def wait_longer(self: Claim, found: bytes, probe: str) -> None:
        wait(self, found, probe)
        write_claim("faster")

    monkeypatch.setattr(Claim, "_wait_until_stale", wait_longer)
    with pytest.raises(DatasetError, match=r"another run \(process 1 on elsewhere\) is writing here"):
        mine.take()
    assert b"faster" in storage.read_bytes(LOCK)
