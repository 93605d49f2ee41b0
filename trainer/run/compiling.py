"""Time spent on compiling, which is kept out of the logged speed, and the run of ``--compile-only``."""

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
    """Measures the time spent compiling. It stores the sizes of micro-batches that the compiled model has
    already seen.

    The model is compiled for each size when a micro-batch of that size first arrives.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._sizes = set[tuple[int, int]]()  # tokens, masked slots

    def measure(self, updates: Sequence[Update], make: Callable[[], Made]) -> tuple[Made, float]:
        """Call ``make``. Return its result and the seconds that it spent compiling.

        The whole time of the call counts as compiling if a micro-batch has a new size. Otherwise the seconds
        are 0.
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
    """Compile the model for every usual shape of a micro-batch, without training."""
    runtime, form = planned.runtime, planned.form()
    runtime.log("compiling")
    updates: list[list[Sequence[Batch]]] = [[[blank]] for blank in form.make_blank_batches()]
    if not updates:
        with closing(planned.loader(form, training.state)) as loader:
            updates = [[next(loader).batches for _ in range(runtime.device.updates_per_call)]]
    strategy, first = training.strategy, training.state.update_number
    # only strategies of devices with separate programs (IPU) have a method ``compile``
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
    """Compile the model for the shapes of these updates, by making the updates with learning rate 0.

    The weights must not be used afterwards. Updates are repeated because the optimiser has moments only after
    the first one, and may then need another graph.
    """
    device = strategy.worker.device
    for _ in range(device.updates_to_compile):
        (values,) = strategy.update(updates, 0.0, first)
    device.to_host(values)  # waits until the device has finished
