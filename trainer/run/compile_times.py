"""The time that a device takes to compile, which is no part of the speed that is shown."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from trainer.data.batches import Batch
from trainer.data.loader import Update

Made = TypeVar("Made")


class CompileTimes:
    """The sizes of micro-batches that a compiled model has had. Each is compiled when it first comes."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._sizes = set[tuple[int, int]]()  # tokens, masked slots

    def measure(self, updates: Sequence[Update[Batch]], make: Callable[[], Made]) -> tuple[Made, float]:
        """The result of ``make``, and the seconds that it compiled: all it took if a size is new, else 0."""
        batches = (batch for update in updates for batch in update.batches)
        sizes = {(batch.input_ids.numel(), batch.masked_lm_ids.numel()) for batch in batches}
        new = sizes - self._sizes
        started = time.perf_counter()
        made = make()
        if not new:
            return made, 0.0
        seconds = time.perf_counter() - started
        self._sizes.update(new)
        listed = " and ".join(f"{tokens:,}" for tokens in sorted({tokens for tokens, _ in new}))
        self._log(f"compiled for {listed} tokens in {seconds:.0f} s")
        return made, seconds
