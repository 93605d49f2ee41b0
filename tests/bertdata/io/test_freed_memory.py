"""Memory that is freed under a block that stays: the system's again, in every worker of a pool."""

import ctypes

import psutil
import pytest

from bertdata.io.freed_memory import return_freed_memory
from bertdata.io.process_pool import run_in_order

LARGEST, LARGE, SMALL = 24 << 20, 16 << 20, 100_000
HAS_GLIBC = hasattr(ctypes.CDLL(None), "mallopt")


def bytes_kept(number: int) -> int:
    """Bytes that the process keeps of a block freed under a small one, once a larger block was freed."""
    del number
    bytes(LARGEST)  # raises the limit from which glibc gives a block memory of its own
    before = psutil.Process().memory_info().rss
    large, small = b"x" * LARGE, b"x" * SMALL
    del large
    return psutil.Process().memory_info().rss - before - len(small)


@pytest.mark.skipif(not HAS_GLIBC, reason="only glibc keeps freed memory so")
def test_a_worker_returns_large_blocks_though_small_ones_lie_behind_them() -> None:
    assert max(run_in_order(bytes_kept, range(2), 2)) < LARGE // 4


@pytest.mark.skipif(not HAS_GLIBC, reason="only glibc keeps freed memory so")
def test_memory_between_blocks_in_use_is_returned() -> None:
    before = psutil.Process().memory_info().rss
    blocks = [b"x" * SMALL for _ in range(400)]
    kept = blocks[::10]
    del blocks
    return_freed_memory()
    assert psutil.Process().memory_info().rss - before < 100 * SMALL
    assert len(kept) == 40
