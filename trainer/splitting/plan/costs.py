"""Time and memory that the model's parts and the optimiser need on one device.

The costs of a part depend on the number of rows in a micro-batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from trainer.plugins import find
from trainer.splitting.plan.footprint import Footprint, measure_footprints
from trainer.splitting.plan.parts import list_layer_names, make_shape
from trainer.splitting.plan.request import PlanRequest, list_meshes


class PassTimes(NamedTuple):
    """Seconds of the forward pass and of the backward pass of a part of the model.

    recompute: seconds added if the part keeps only its input between the passes and computes the rest again.
    """

    forward: float
    backward: float
    recompute: float = 0.0


class PartCosts(NamedTuple):
    """Costs of one part of the model for a micro-batch: the fields of PassTimes in seconds, and of Footprint
    in bytes.
    """

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

    layers: the costs of each layer. step: seconds that the optimiser's step takes, divided by the number of
    weights.
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
"""Times of each part of the model. The keys are the names that ``parts.list_part_names`` returns."""


def compute_analytic_costs(request: PlanRequest) -> Costs:
    """Return costs that are computed, not measured: counted operations divided by the request's speed of a
    device.
    """
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
    """Return a function that interpolates costs between the smallest and the largest possible micro-batch.

    Possible are the micro-batches of all meshes (divisions of the devices) that the request allows.
    seconds: function that returns the times for a number of rows.
    step: seconds of the optimiser's step per weight.
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
    """Return records of numbers for this many rows, interpolated or extrapolated linearly.

    known: the known records, by number of rows and then by name. The line goes through the records with the
    fewest and the most rows. Whole numbers stay whole.
    """
    least, most = min(known), max(known)
    fraction = (rows - least) / max(1, most - least)

    def between(first: Any, last: Any) -> Any:
        value = first + fraction * (last - first)
        return round(value) if isinstance(first, int) else value

    return {name: type(low)(*map(between, low, known[most][name])) for name, low in known[least].items()}


def measure_request_footprints(request: PlanRequest, rows: int) -> Mapping[str, Footprint]:
    """Return the operations and memory of each part of the request's model, for micro-batches of this many
    rows.
    """
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
