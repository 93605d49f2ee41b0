"""Entries sorted on disk: in order, each as often as it was added, with memory that does not grow."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.io import sorted_entries
from bertdata.io.sorted_entries import SortedEntries
from tests.support.memory import peak_bytes


@given(st.lists(st.binary(min_size=3, max_size=3), max_size=60), st.integers(1, 9), st.integers(2, 4))
def test_entries_come_in_the_order_of_their_bytes(entries: list[bytes], run: int, runs: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_entries, "RUN_ENTRIES", run)
        patch.setattr(sorted_entries, "MOST_RUNS", runs)
        with SortedEntries(3) as found:
            for entry in entries:
                found.add(entry)
            assert list(found) == sorted(entries)


def test_memory_does_not_grow_with_the_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_entries, "RUN_ENTRIES", 1000)
    monkeypatch.setattr(sorted_entries, "MOST_RUNS", 8)
    monkeypatch.setattr(sorted_entries, "_BLOCK_ENTRIES", 16)

    def sort(number: int) -> None:
        rng, last, count = random.Random(1), b"", 0
        with SortedEntries(16) as found:
            for _ in range(number):
                found.add(rng.randbytes(16))
            for entry in found:
                assert last <= entry
                last, count = entry, count + 1
        assert count == number

    assert peak_bytes(lambda: sort(60_000)) < 60_000 * 16 / 4
