"""Compiling of the model: measuring its time, which the logged speed leaves out, and ``--compile-only``."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar

from trainer.data.batches import Batch
from trainer.data.loader import Update
from trainer.run.planned_updates import PlannedUpdates
from trainer.run.training_state import Training
from trainer.update.strategy import Strategy, UpdateNumber

Made = TypeVar("Made")


class CompileTimes:
    """Object that measures how long the model is compiled, and remembers for which sizes of micro-batches it
    was compiled.

    The model is compiled for a size when the first micro-batch of that size arrives.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._sizes = set[tuple[int, int]]()  # pairs of (tokens, masked slots)

    def measure(self, updates: Sequence[Update], make: Callable[[], Made]) -> tuple[Made, float]:
        """Call ``make`` and return (its result, seconds of compiling).

        If one of the micro-batches has a new size, the time of the whole call counts as compiling. If all
        sizes are known, the seconds are 0.
        updates: the updates that ``make`` makes.
        """
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


def compile_shapes(training: Training, planned: PlannedUpdates) -> Training:
    """Compile the model for the usual sizes of micro-batches, without training it."""
    runtime, form = planned.runtime, planned.form()
    runtime.log("compiling")
    updates: list[list[Sequence[Batch]]] = [[[blank]] for blank in form.make_blank_batches()]
    if not updates:
        with closing(planned.loader(form, training.state)) as loader:
            updates = [[next(loader).batches for _ in range(runtime.device.updates_per_call)]]
    strategy, first = training.strategy, training.state.update_number
    # Only the strategy of devices with separate programs (IPUs) has a method ``compile``.
    make = getattr(strategy, "compile", None)
    for micro_batches in updates:
        (make or partial(compile_by_updates, strategy))(micro_batches, first)
    kind = "packed rows" if planned.examples_per_row > 1 else "examples"
    runtime.log(
        f"compiled for {runtime.device.describe()}, micro-batches of {planned.batch_size} {kind}, "
        f"{form.describe()}; nothing was trained"
    )
    training.is_over = True
    return training


def compile_by_updates(strategy: Strategy, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
    """Compile the model for the sizes of these updates' micro-batches, by making the updates with learning
    rate 0.

    The weights must not be used afterwards. Some devices need to make the updates twice: the optimiser has
    moments only after the first time, and may then need another compiled graph.
    """
    device = strategy.worker.device
    for _ in range(device.updates_to_compile):
        (values,) = strategy.update(updates, 0.0, first)
    device.to_host(values)  # waits until the device has finished
