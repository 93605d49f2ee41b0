"""Costs of the model's parts on one device, by the rows of a micro-batch, and of the optimisers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from trainer.plugins import find
from trainer.splitting.plan.footprint import Footprint, measure_footprints
from trainer.splitting.plan.parts import layer_names, shape_of
from trainer.splitting.plan.request import PlanRequest, meshes_of


class PassTimes(NamedTuple):
    """Seconds of a part's passes. recompute: added to both where only its input is kept between them."""

    forward: float
    backward: float
    recompute: float = 0.0


class PartCosts(NamedTuple):
    """One part's costs on a micro-batch: its PassTimes, and the memory of its Footprint, bytes."""

    parameters: int
    tied: int
    kept: int
    handed: int
    working: int
    cast: int
    forward: float
    backward: float
    recompute: float


Numbers = TypeVar("Numbers", PassTimes, PartCosts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCosts:
    """The costs of all parts for one size of micro-batches. step: the optimiser's seconds for one value."""

    embeddings: PartCosts
    layers: tuple[PartCosts, ...]
    heads: PartCosts
    step: float

    @property
    def seconds(self) -> float:
        """Forward and backward pass of a micro-batch on one device."""
        parts = (self.embeddings, *self.layers, self.heads)
        return sum(part.forward + part.backward for part in parts)


Costs = Callable[[int], ModelCosts]
"""The costs of micro-batches of so many rows."""

Seconds = Mapping[str, PassTimes]
"""The times of each part of ``parts.part_names``."""


def analytic_costs(request: PlanRequest) -> Costs:
    """Costs counted on the model's modules, with times by the request's rate."""
    rate = request.rate

    def seconds(size: int) -> Seconds:
        times = {}
        for name, one in footprints(request, size).items():
            forward = rate.seconds(*one.forward)
            times[name] = PassTimes(forward, rate.seconds(*one.backward), recompute=forward)
        return times

    step = optimiser_costs(request.update.optimiser).moved / rate.bytes
    return costs_between(request, seconds, step)


def costs_between(request: PlanRequest, seconds: Callable[[int], Seconds], step: float) -> Costs:
    """Costs on the line between those of the smallest and the largest number of rows of the request's meshes.

    seconds: the times for a number of rows. step: ModelCosts.step. Operations and kept bytes are linear; the
    memory of the busiest moment is convex, so that the line is not below it.
    """
    rows = [mesh.rows for mesh in meshes_of(request)]
    known = {
        size: {
            name: PartCosts(**(one._asdict() | times[name]._asdict()))
            for name, one in footprints(request, size).items()
        }
        for size, times in ((size, seconds(size)) for size in (min(rows), max(rows)))
    }

    @cache
    def costs(size: int) -> ModelCosts:
        parts = on_line(known, size)
        layers = tuple(parts[name] for name in layer_names(request.model))
        return ModelCosts(embeddings=parts["embeddings"], layers=layers, heads=parts["heads"], step=step)

    return costs


def on_line(known: Mapping[int, Mapping[str, Numbers]], rows: int) -> Mapping[str, Numbers]:
    """The records for so many rows, on the line through those of the least and of the most rows.

    known: by rows and name. Whole numbers stay whole.
    """
    least, most = min(known), max(known)
    fraction = (rows - least) / max(1, most - least)

    def between(first: Any, last: Any) -> Any:
        value = first + fraction * (last - first)
        return round(value) if isinstance(first, int) else value

    return {name: type(low)(*map(between, low, known[most][name])) for name, low in known[least].items()}


def footprints(request: PlanRequest, rows: int) -> Mapping[str, Footprint]:
    """The footprints of the request's parts on micro-batches of so many rows."""
    return measure_footprints(request.model, shape_of(request, rows), request.update.precision, request.head)


class OptimiserCosts(NamedTuple):
    """Bytes a value: of its moments, and read and written by a step. has_change: a step makes u first."""

    moments: int
    moved: int
    has_change: bool = False


def optimiser_costs(name: str) -> OptimiserCosts:
    """The costs of a name of trainer.plugins's presets, whose state is fp32.

    A step reads gradients for their norm (4 bytes a value), then reads and writes weight and moments; LAMB
    makes its change u apart, adds the weight decay, takes two norms and adds u to the weights.
    """
    preset = find("optimiser", name)
    if preset.kind == "sgd":
        return OptimiserCosts(4, 24) if preset.momentum else OptimiserCosts(0, 16)
    return OptimiserCosts(8, 32) if preset.trust == "none" else OptimiserCosts(8, 68, has_change=True)
