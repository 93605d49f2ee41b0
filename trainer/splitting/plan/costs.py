"""Time and memory that the parts of a model and the optimiser need on one device.

The parts are the embeddings, each layer, and the heads. The costs of a part depend on the number of
rows in a micro-batch.
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
    """Seconds that the forward pass and the backward pass of a part of the model take.

    recompute: additional seconds of the backward pass if the part keeps only its input and computes its other
        activations again.
    """

    forward: float
    backward: float
    recompute: float = 0.0


class PartCosts(NamedTuple):
    """Time and memory that one part of the model needs for a micro-batch.

    The fields have the meaning that they have in ``PassTimes`` (in seconds) and in ``Footprint`` (in bytes).
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
    """Time and memory that all parts of the model need for micro-batches of one size.

    layers: the costs of each layer.
    step: seconds per weight that the optimiser's step takes.
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
"""Function from the number of rows in a micro-batch to the costs of the model's parts."""

Seconds = Mapping[str, PassTimes]
"""Times of the parts of a model. The keys are the names that ``parts.list_part_names`` returns."""


def compute_analytic_costs(request: PlanRequest) -> Costs:
    """Return costs that are computed, not measured.

    The operations of each part are counted and divided by the speed of a device in the request.
    """
    rate = request.rate

    def compute_times(size: int) -> Seconds:
        times = {}
        for name, one in measure_request_footprints(request, size).items():
            forward = rate.seconds(*one.forward)
            times[name] = PassTimes(forward, rate.seconds(*one.backward), recompute=forward)
        return times

    step = find_optimiser_costs(request.update.optimiser).moved / rate.bytes
    return interpolate_costs(request, compute_times, step)


def interpolate_costs(request: PlanRequest, seconds: Callable[[int], Seconds], step: float) -> Costs:
    """Return a function from the rows of a micro-batch to its costs, interpolated between two sizes of
    micro-batches.

    The two sizes are the smallest and the largest that any division of the devices may use. Operations and
    the bytes kept for the backward pass grow linearly with the rows. The memory at the busiest moment is a
    convex function of the rows, so the line is never below it.
    seconds: function from a number of rows to the times of the model's parts.
    step: seconds per weight of the optimiser's step.
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
    def compute_costs(size: int) -> ModelCosts:
        parts = interpolate(known, size)
        layers = tuple(parts[name] for name in list_layer_names(request.model))
        return ModelCosts(embeddings=parts["embeddings"], layers=layers, heads=parts["heads"], step=step)

    return compute_costs


def interpolate(known: Mapping[int, Mapping[str, Numbers]], rows: int) -> Mapping[str, Numbers]:
    """Return a record of numbers for each name, for a number of rows that lies between or outside of the
    known numbers.

    The numbers lie on a straight line through the known records with the fewest and the most rows. Numbers
    that are int in the known records are rounded to int.
    known: for each known number of rows, the record of each name.
    """
    least, most = min(known), max(known)
    fraction = (rows - least) / max(1, most - least)

    def interpolate_value(first: Any, last: Any) -> Any:
        value = first + fraction * (last - first)
        return round(value) if isinstance(first, int) else value

    return {
        name: type(low)(*map(interpolate_value, low, known[most][name])) for name, low in known[least].items()
    }


def measure_request_footprints(request: PlanRequest, rows: int) -> Mapping[str, Footprint]:
    """Return the operations and memory of each part of the request's model, for
    micro-batches of ``rows`` rows.
    """
    return measure_footprints(
        request.model, make_shape(request, rows), request.update.precision, request.head
    )


class OptimiserCosts(NamedTuple):
    """Bytes per weight that an optimiser keeps, and that it reads and writes.

    moments: bytes of the moments.
    moved: bytes that are read and written in a step.
    has_change: whether a step computes the whole change of a chunk of weights before it applies it, which
        needs additional memory.
    """

    moments: int
    moved: int
    has_change: bool = False


def find_optimiser_costs(name: str) -> OptimiserCosts:
    """Return the costs of an optimiser, by its name in ``trainer.plugins``. Its state is in fp32.

    A step first reads the gradients to compute their norm (4 bytes per weight). Then it reads and writes
    weights and moments. LAMB computes its change separately, adds weight decay, computes two norms, and adds
    the change to the weights.
    """
    preset = find("optimiser", name)
    if preset.kind == "sgd":
        return OptimiserCosts(4, 24) if preset.momentum else OptimiserCosts(0, 16)
    return OptimiserCosts(8, 32) if preset.trust == "none" else OptimiserCosts(8, 68, has_change=True)
