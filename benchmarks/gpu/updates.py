"""Speed of the trainer's updates, with the keys of a configuration that comes with it or with other keys."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.clock import add_peak_memory, time_call
from benchmarks.gpu.figures import NOT_HERE, Figures, find_value
from benchmarks.gpu.kernels import KINDS, sum_times_by_type
from benchmarks.gpu.runner import STARTED
from benchmarks.gpu.sizes import Sizes
from bertdata.dataset.reader import OpenedDataset
from bertdata.records import DEFAULT_OBJECTIVE, ShardLayout
from trainer.checkpoints.checkpoint import make_initial_state
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader, Update
from trainer.data.rows import find_rows
from trainer.model.headed import count_operations
from trainer.run.runtime import find_model_config, make_model, open_runtime
from trainer.run.training_state import Training
from trainer.update.worker import Runtime

WARM_UP = 2
"""Number of updates before the clock starts. Before them, one micro-batch of each shape is compiled and run.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedWork:
    """Amount of work in the timed updates. Padding is not counted, except in ``fed``.

    fed: number of positions that the model gets, with padding.
    """

    sequences: int
    tokens: int
    fed: int
    operations: float

    @classmethod
    def count(cls, batches: Sequence[Batch], shape: ModelConfig) -> "TimedWork":
        """Return the amount of work of these micro-batches.

        shape: the model's configuration.
        """
        counted = count_operations(batches, shape)
        return cls(
            sequences=sum(int(np.count_nonzero(batch.lengths())) for batch in batches),
            tokens=counted.tokens,
            fed=sum(batch.input_ids.numel() for batch in batches),
            operations=counted.operations,
        )


def measure_updates(
    figures: Figures,
    sizes: Sizes,
    phase: str,
    keys: dict[str, Any] | None = None,
    divide: int = 1,
) -> None:
    """Measure the updates of a phase: their speed, their share of the device's limits, and their memory.

    phase: name of the configuration.
    keys: configuration keys to replace. None: no keys are replaced.
    divide: number by which the size of micro-batches is divided. The number of micro-batches is multiplied by
        it, so an update has the same examples.
    """
    prepared = PreparedUpdates.prepare(sizes, phase, WARM_UP + sizes.updates, keys or {}, divide)
    drawn, make = prepared.drawn, prepared.make
    first = {batch.input_ids.shape: batch for update in drawn for batch in update.batches}
    for batch in first.values():
        seconds = time_call(lambda: make(Update([batch], drawn[0].position)), sizes.device)  # noqa: B023
        figures.add("first micro-batch of a shape", seconds, "s", tokens=batch.input_ids.numel())
    time_call(lambda: make(drawn[0]), sizes.device)
    if STARTED in os.environ:
        seconds = time.time() - float(os.environ[STARTED])
        figures.add("start of the process to the end of the first update", seconds, "s")
    timed = drawn[WARM_UP:]
    seconds = time_updates(make, drawn[1:WARM_UP], timed, sizes.device)
    work = TimedWork.count([batch for update in timed for batch in update.batches], prepared.shape)
    add_speed(figures, sizes, work, seconds, len(timed))
    figures.add("real share of the tokens fed", work.tokens / work.fed, "of 1")
    add_peak_memory(figures, sizes.device)


def measure_kernels(figures: Figures, sizes: Sizes, phase: str) -> None:
    """Measure how long the GPU's kernels of each type take in an update of a phase.

    phase: name of the configuration.
    """
    prepared = PreparedUpdates.prepare(sizes, phase, WARM_UP + 1)
    *before, last = prepared.drawn
    for update in before:
        prepared.make(update)
    add_kernels(figures, sizes.device, lambda: prepared.make(last))


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedUpdates:
    """A model on the device, and the examples of its updates.

    shape: the model's configuration.
    size: number of examples of a micro-batch.
    drawn: the micro-batches of the updates.
    """

    training: Training
    shape: ModelConfig
    size: int
    drawn: list[Update]

    @classmethod
    def prepare(
        cls, sizes: Sizes, phase: str, count: int, keys: Mapping[str, Any] = MappingProxyType({}),
        divide: int = 1,
    ) -> "PreparedUpdates":  # fmt: skip
        """Build the model of a phase, and load the examples of ``count`` updates.

        phase: name of the configuration.
        keys: configuration keys to replace.
        divide: number by which the size of micro-batches is divided, and their number multiplied.
        """
        config = sizes.config(phase, **keys)
        size = (config.update.batch_size or 1) // divide
        config = config.changed(batch_size=size)
        data = make_phase_data(config, sizes.phases[phase].fill)
        runtime = open_runtime(config).changed(config, data)
        shape = find_model_config(config, data)
        state = make_initial_state(config, shape, data.digest)
        drawn = draw_updates(data, runtime, size, sizes.accumulation * divide, count)
        return cls(
            training=Training(runtime, make_model(runtime, shape), state),
            shape=shape,
            size=size,
            drawn=drawn,
        )

    def make(self, update: Update) -> None:
        """Make an update."""
        self.training.update([update])
        self.training.advance(update.position, self.size * len(update.batches))


def make_phase_data(config: Config, fill: float) -> OpenedDataset:
    """Return generated examples with the lengths and masks that the configuration asks for.

    fill: share of the positions that contain a token.
    """
    length, masks = config.data.max_seq_length, config.data.max_predictions_per_seq
    assert length is not None
    assert masks is not None
    objective = config.data.objective or DEFAULT_OBJECTIVE
    layout = ShardLayout(max_seq_length=length, max_predictions_per_seq=masks, objective=objective)
    return generate_data(layout, vocabulary_size=config.model_settings["vocab_size"], fill=fill)


def draw_updates(
    data: OpenedDataset, runtime: Runtime, size: int, accumulation: int, count: int
) -> list[Update]:
    """Load the micro-batches of ``count`` updates, and move them to the device.

    size: number of examples of a micro-batch.
    accumulation: number of micro-batches of an update.
    """
    rows, device = find_rows(runtime.config, data), runtime.device
    form = make_form(
        rows,
        batch_size=size,
        padded=runtime.has_rows,
        token_budget=runtime.config.data.token_budget,
        micro_batches=accumulation,
        few_widths=device.compiles or device.needs_rows,
    )
    loader = Loader(
        rows,
        form=form,
        batch_size=size,
        accumulation=accumulation,
        seed=runtime.config.data.seed,
        prepare=runtime.device.prepare,
    )
    try:
        return [next(loader) for _ in range(count)]
    finally:
        loader.close()


def time_updates(
    make: Callable[[Update], None],
    before: Sequence[Update],
    timed: Sequence[Update],
    device: str,
) -> float:
    """Return the seconds of the timed updates.

    make: function that makes an update.
    before: updates that are made first and not timed.
    timed: updates that are timed.
    """

    def make_all(several: Sequence[Update]) -> None:
        """Make the updates, one after another."""
        for update in several:
            make(update)

    time_call(lambda: make_all(before), device)
    return time_call(lambda: make_all(timed), device)


def add_speed(figures: Figures, sizes: Sizes, work: TimedWork, seconds: float, count: int) -> None:
    """Write the speed of the timed updates: sequences, tokens and operations per second.

    Padding does not count. The share of the device's limits is written too.

    seconds: seconds of all updates.
    count: number of updates.
    """
    done = work.operations / seconds / 1e12
    figures.add("sequences", work.sequences / seconds, "a second")
    figures.add("real tokens", work.tokens / seconds, "a second")
    figures.add("operations", done, "TFLOP/s")
    ceiling = find_value(figures.folder, "ceiling", "ceiling")
    for name, limit in (("measured ceiling", ceiling), ("peak", sizes.peak)):
        if limit:
            figures.add(f"share of the {name}", done / limit, "of 1", limit=limit)
        else:
            figures.add_absent(f"share of the {name}", "not measured" if sizes.device == "cuda" else NOT_HERE)
    figures.add("update", seconds / count, "s", sequences=work.sequences // count)


def add_kernels(figures: Figures, device: str, update: Callable[[], None]) -> None:
    """Write how long the CUDA kernels of an update take, by type of kernel, and the share of each type.

    update: function that makes the update.
    """
    if device != "cuda":
        update()
        for kind in KINDS:
            figures.add_absent(f"kernels: {kind}", NOT_HERE)
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        start = time.perf_counter()
        update()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    found = list_kernel_times(profile.key_averages())
    total = sum(milliseconds for _, milliseconds in found)
    for kind, milliseconds in sum_times_by_type(found).items():
        figures.add(f"kernels: {kind}", milliseconds, "ms an update", share=milliseconds / total)
    figures.add("kernels: all", total, "ms an update", of_seconds=seconds)
    longest = sorted(found, key=lambda one: -one[1])[:12]
    print("\n".join(f"{milliseconds:9.3f} ms  {name[:150]}" for name, milliseconds in longest))


def list_kernel_times(events: Iterable[Any]) -> list[tuple[str, float]]:
    """Return the name and the milliseconds of each kernel in the averages of PyTorch's profiler.

    Ranges of code, which are in the averages too, are left out.
    """
    return [
        (event.key, event.self_device_time_total / 1e3)
        for event in events
        if event.self_device_time_total > 0 and not event.is_user_annotation
    ]
