"""A short round of the campaign of ``python -m tests.soak.hostile``; docs/reliability.md has a long one."""

from collections import Counter

from tests.soak.hostile import CALLS, SHARDS, call_kernels, damage_files, in_a_process


def test_damaged_shards_are_refused_or_read_as_they_were() -> None:
    results, wrong = in_a_process(damage_files, 240, seed=11)
    assert wrong == []
    assert results["refused"] > 200
    readings = sum(len(readings) for _, readings in SHARDS.values())
    assert results.total() == 240 // len(SHARDS) * readings


def test_no_call_of_a_kernel_crashes_or_hangs() -> None:
    results, wrong = in_a_process(call_kernels, 5000, seed=11)
    assert wrong == []
    assert results["done"] > 5000 // len(CALLS) / 2
    assert results["refused"] > 1000


def die(count: int, seed: int, channel) -> None:
    import os

    channel.send("the last words")
    os._exit(7)


def test_a_crash_is_told_with_what_it_was_at() -> None:
    assert in_a_process(die, 0, 0) == (Counter(), ["the last words: the process died (7)"])
