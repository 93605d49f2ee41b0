"""Comparisons of data files with their md5s that come late, as those of many large files do."""

import time
from collections.abc import Callable
from pathlib import Path

from bertdata.io.file_check import compute_file_md5s
from tests.support.training_runs import losses

ComputeMd5s = Callable[..., list[str]]


def hold_checks(condition: Callable[[], object]) -> ComputeMd5s:
    """Return a function for ``trainer.data.file_checks`` that reads no file until a condition is met."""

    def compute(paths: list[str], before_blocks: Callable[[], None] = lambda: None) -> list[str]:
        while not condition():
            before_blocks()
            time.sleep(0.01)
        return compute_file_md5s(paths)

    return compute


def count_updates(run: Path) -> int:
    """Return the number of updates that a run has logged."""
    return len(losses(run)) if (run / "training.csv").exists() else 0
