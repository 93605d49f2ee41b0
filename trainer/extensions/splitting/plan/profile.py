"""Profiles: times of the model's parts, measured on the devices of a run."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bertdata.io.freed_memory import keep_less_freed_memory
from trainer.collectives.collective import Collective
from trainer.devices.device import HOST, Device
from trainer.extensions.splitting.plan.costs import Costs, PassTimes, Seconds, between, costs_between
from trainer.extensions.splitting.plan.meshes import meshes_of
from trainer.extensions.splitting.plan.parts import layer_names, part_names
from trainer.extensions.splitting.plan.request import PlanRequest
from trainer.extensions.splitting.plan.timed_updates import Clock, Profile, TimedUpdates

MOST_TOKENS = 8192
"""Tokens of the largest micro-batch that is run; times of larger ones lie on the line through two."""

_LARGE = 1 << 20
"""Bytes of tensors that have memory of their own; otherwise glibc keeps up to half as much again."""

REPETITIONS = 5
"""Updates that count, after one that does not; the least of each time is taken: other work adds to it."""


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
    return_memory(device)  # as models that are split have it, which costs processors time
    workers.barrier()
    low = high = measure_updates(request, device, least, clock)
    if most > least:
        high = measure_updates(request, device, most, clock)
    found = [
        (_from_json(one), _from_json(two)) for one, two in workers.gather([low._asdict(), high._asdict()])
    ]
    low, high = max(found, key=lambda pair: _total(pair[1], request))

    def seconds(size: int) -> Seconds:
        fraction = (size - least) / max(1, most - least)
        return {name: between(low.passes[name], high.passes[name], fraction) for name in low.passes}

    return costs_between(request, rows, seconds, high.step)


def return_memory(device: Device) -> None:
    """Make this process return freed memory to the system. Memory of accelerators is unaffected."""
    if device.torch_device.type == HOST.type:
        keep_less_freed_memory(_LARGE)


def attention_of(device: Device) -> str:
    """The kind of the device's attention: as of PlanRequest."""
    if device.torch_device.type != HOST.type:
        return "fused"
    return "scores" if device.config.keys["rows"] or device.needs_rows else "flat"


def measure_updates(request: PlanRequest, device: Device, rows: int, clock: Clock) -> Profile:
    """The least times of some updates on micro-batches of so many rows.

    Where a plan may recompute, so do as many updates, in turn with the others.
    """
    updates = TimedUpdates(request, device, rows, clock)
    updates.run()  # makes moments, and loads kernels
    plain, recomputed = [], []
    for _ in range(REPETITIONS):
        plain.append(updates.run())
        if request.recompute != "never":
            recomputed.append(updates.run(recomputes=True))
    passes = {name: _least_times(plain, name) for name in part_names(request.model)}
    for name in layer_names(request.model) if recomputed else ():
        more = sum(_least_times(recomputed, name)) - sum(_least_times(plain, name))
        passes[name] = passes[name]._replace(recompute=max(0.0, more))
    return Profile(passes, step=min(one.step for one in plain))


def _least_times(updates: Sequence[Profile], name: str) -> PassTimes:
    """The least seconds of the passes of a part of that name."""
    return PassTimes(*map(min, zip(*(one.passes[name] for one in updates), strict=True)))


def _total(profile: Profile, request: PlanRequest) -> float:
    """Seconds of the passes through the model."""
    counts = Counter(layer_names(request.model))
    return sum(
        (times.forward + times.backward) * counts.get(name, 1) for name, times in profile.passes.items()
    )


def _from_json(values: dict[str, Any]) -> Profile:
    return Profile({name: PassTimes(*times) for name, times in values["passes"].items()}, values["step"])
