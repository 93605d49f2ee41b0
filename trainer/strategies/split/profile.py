"""Profiles: times of the model's parts, measured on the devices of a run."""

import time
from statistics import median
from typing import Any

from trainer.collectives.collective import Collective
from trainer.devices.device import Device
from trainer.strategies.split.costs import Costs, Seconds, costs_between
from trainer.strategies.split.meshes import meshes_of
from trainer.strategies.split.parts import NAMES
from trainer.strategies.split.request import PlanRequest
from trainer.strategies.split.timed_updates import Clock, TimedUpdates, UpdateTimes

MOST_TOKENS = 8192
"""Tokens of the largest micro-batch that is run; times of larger ones lie on the line through two."""

REPETITIONS = 5
"""Updates that count, after one that does not; the median of each time is taken."""


def profiled_costs(
    request: PlanRequest, device: Device, workers: Collective, clock: Clock = time.perf_counter
) -> Costs:
    """The costs of the request's parts with times measured on the device, in some seconds.

    All workers call this together, because those of one machine share caches and memory, and have the same
    costs: those of the slowest one, for which an update waits. Updates are made on micro-batches of two
    sizes: of those that a plan may have the smallest and the largest, with at most MOST_TOKENS tokens.
    """
    rows = sorted({mesh.rows for mesh in meshes_of(request)})
    runnable = [size for size in rows if size * request.sequence_length <= MOST_TOKENS] or rows[:1]
    least, most = runnable[0], runnable[-1]
    device.return_memory()  # as models that are split have it, which costs processors time
    workers.barrier()
    low = high = measure_updates(request, device, least, clock)
    if most > least:
        high = measure_updates(request, device, most, clock)
    found = [
        (_from_json(one), _from_json(two)) for one, two in workers.gather([_as_json(low), _as_json(high)])
    ]
    low, high = max(found, key=lambda pair: _total(pair[1], request.model.num_hidden_layers))

    def seconds(size: int) -> Seconds:
        share = (size - least) / max(1, most - least)
        return {name: _between(low.passes[name], high.passes[name], share) for name in NAMES}

    return costs_between(request, rows, seconds, high.step)


def measure_updates(request: PlanRequest, device: Device, rows: int, clock: Clock) -> UpdateTimes:
    """The median times of some updates on micro-batches of so many rows."""
    updates = TimedUpdates(request, device, rows, clock)
    updates.run()  # makes moments, and loads kernels
    times = [updates.run() for _ in range(REPETITIONS)]
    passes = {
        name: (median(one.passes[name][0] for one in times), median(one.passes[name][1] for one in times))
        for name in NAMES
    }
    return UpdateTimes(passes=passes, step=median(one.step for one in times))


def _total(times: UpdateTimes, layers: int) -> float:
    """Seconds of the passes through a model of so many layers."""
    return sum(sum(pair) * (layers if name == "layer" else 1) for name, pair in times.passes.items())


def _between(low: tuple[float, float], high: tuple[float, float], share: float) -> tuple[float, float]:
    return low[0] + share * (high[0] - low[0]), low[1] + share * (high[1] - low[1])


def _as_json(times: UpdateTimes) -> dict[str, Any]:
    return {"passes": times.passes, "step": times.step}


def _from_json(values: dict[str, Any]) -> UpdateTimes:
    passes = {name: (forward, backward) for name, (forward, backward) in values["passes"].items()}
    return UpdateTimes(passes=passes, step=values["step"])
