"""Costs of the model's parts on one device, by the rows of a micro-batch, and costs of optimisers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from trainer.plugins import find
from trainer.splitting.plan.footprint import Footprint, measure_footprints
from trainer.splitting.plan.parts import list_layer_names, make_shape
from trainer.splitting.plan.request import PlanRequest, list_meshes


class PassTimes(NamedTuple):
    """Seconds of a part's forward and backward pass.

    recompute: seconds added if the part keeps only its input between the passes and computes the rest again.
    """

    forward: float
    backward: float
    recompute: float = 0.0


class PartCosts(NamedTuple):
    """Costs of one part for a micro-batch: the seconds of PassTimes and the bytes of Footprint."""

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
    """Costs of all parts for micro-batches of one size.

    layers: a cost for each layer. step: seconds of the optimiser's step per weight.
    """

    embeddings: PartCosts
    layers: tuple[PartCosts, ...]
    heads: PartCosts
    step: float

    @property
    def seconds(self) -> float:
        """Seconds of the forward and backward pass of a micro-batch on one device."""
        parts = (self.embeddings, *self.layers, self.heads)
        return sum(part.forward + part.backward for part in parts)


Costs = Callable[[int], ModelCosts]
"""Function that returns the costs for a number of rows per micro-batch."""

Seconds = Mapping[str, PassTimes]
"""Times by the names of ``parts.list_part_names``."""


def compute_analytic_costs(request: PlanRequest) -> Costs:
    """Return costs computed from counted operations and the request's rate, without measuring."""
    rate = request.rate

    def seconds(size: int) -> Seconds:
        times = {}
        for name, one in measure_request_footprints(request, size).items():
            forward = rate.seconds(*one.forward)
            times[name] = PassTimes(forward, rate.seconds(*one.backward), recompute=forward)
        return times

    step = find_optimiser_costs(request.update.optimiser).moved / rate.bytes
    return interpolate_costs(request, seconds, step)


def interpolate_costs(request: PlanRequest, seconds: Callable[[int], Seconds], step: float) -> Costs:
    """Return a function that interpolates costs between the smallest and the largest micro-batch.

    These are the micro-batches of the request's meshes. seconds: function that returns the times for a number
    of rows. step: as in ModelCosts.
    Operations and kept bytes grow linearly with the rows. The memory at the busiest moment is convex in them,
    so the line does not underestimate it.
    """
    rows = [mesh.rows for mesh in list_meshes(request)]
    known = {
        size: {
            name: PartCosts(**(one._asdict() | times[name]._asdict()))
            for name, one in measure_request_footprints(request, size).items()
        }
        for size, times in ((size, seconds(size)) for size in (min(rows), max(rows)))
    }

    @cache
    def costs(size: int) -> ModelCosts:
        parts = interpolate(known, size)
        layers = tuple(parts[name] for name in list_layer_names(request.model))
        return ModelCosts(embeddings=parts["embeddings"], layers=layers, heads=parts["heads"], step=step)

    return costs


def interpolate(known: Mapping[int, Mapping[str, Numbers]], rows: int) -> Mapping[str, Numbers]:
    """Interpolate records linearly to this many rows, or extrapolate.

    known: records by rows and by name. The line goes through the records with the fewest and the most rows.
    Whole numbers stay whole.
    """
    least, most = min(known), max(known)
    fraction = (rows - least) / max(1, most - least)

    def between(first: Any, last: Any) -> Any:
        value = first + fraction * (last - first)
        return round(value) if isinstance(first, int) else value

    return {name: type(low)(*map(between, low, known[most][name])) for name, low in known[least].items()}


def measure_request_footprints(request: PlanRequest, rows: int) -> Mapping[str, Footprint]:
    """Return the measure_request_footprints of the request's parts for micro-batches of this many rows."""
    return measure_footprints(
        request.model, make_shape(request, rows), request.update.precision, request.head
    )


class OptimiserCosts(NamedTuple):
    """Bytes per weight that an optimiser needs and moves.

    moments: size of the moments. moved: bytes read and written in a step.
    has_change: the step computes the whole change before it applies it, which needs memory for it.
    """

    moments: int
    moved: int
    has_change: bool = False


def find_optimiser_costs(name: str) -> OptimiserCosts:
    """Return the costs of an optimiser in ``trainer.plugins``, whose state is in fp32.

    A step reads the gradients for their norm (4 bytes per weight), then reads and writes weights and moments.
    LAMB computes its change separately, adds weight decay, takes two norms and adds the change to the
    weights.
    """
    preset = find("optimiser", name)
    if preset.kind == "sgd":
        return OptimiserCosts(4, 24) if preset.momentum else OptimiserCosts(0, 16)
    return OptimiserCosts(8, 32) if preset.trust == "none" else OptimiserCosts(8, 68, has_change=True)
