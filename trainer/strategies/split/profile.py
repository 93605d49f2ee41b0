"""Profiles: times of the model's parts, measured on a device."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from trainer.devices.device import Device
from trainer.optim import find_preset, group_parameters
from trainer.optim.norms import LOCAL_NORMS
from trainer.strategies.split.costs import Costs, Seconds, costs_between
from trainer.strategies.split.footprint import TYPES
from trainer.strategies.split.meshes import meshes_of
from trainer.strategies.split.parts import NAMES, Part, Shape, make_part
from trainer.strategies.split.request import PlanRequest

MOST_TOKENS = 8192
"""Tokens of the largest micro-batch that is run; times of larger ones lie on the line through two."""

LAYERS = 4
"""Layers that run one after another, because the weights of a single one might stay in a cache."""

REPETITIONS = 4

Clock = Callable[[], float]
"""Seconds since some moment."""


def profiled_costs(request: PlanRequest, device: Device, clock: Clock = time.perf_counter) -> Costs:
    """The costs of the request's parts with times measured on the device, in some seconds.

    Each part runs forward and backward on micro-batches of two sizes: of those that a plan may have the
    smallest and the largest, with at most MOST_TOKENS tokens. The
    shortest of some repetitions by the clock counts.
    """
    rows = sorted({mesh.rows for mesh in meshes_of(request)})
    runnable = [size for size in rows if size * request.sequence_length <= MOST_TOKENS] or rows[:1]
    low = high = measure_seconds(request, device, runnable[0], clock)
    if (span := runnable[-1] - runnable[0]) > 0:
        high = measure_seconds(request, device, runnable[-1], clock)

    def seconds(size: int) -> Seconds:
        share = (size - runnable[0]) / max(1, span)
        return {name: _between(low[name], high[name], share) for name in low}

    return costs_between(request, rows, seconds, measure_step(request, device, clock))


def _between(low: tuple[float, float], high: tuple[float, float], share: float) -> tuple[float, float]:
    return low[0] + share * (high[0] - low[0]), low[1] + share * (high[1] - low[1])


def measure_seconds(request: PlanRequest, device: Device, rows: int, clock: Clock) -> Seconds:
    """Forward and backward pass of each part on a micro-batch of so many rows."""
    shape = Shape(
        rows=rows,
        length=request.sequence_length,
        masked=request.masked_slots,
        attention=request.attention,
        flat_attention=device.attention,
    )
    found = {}
    for name in NAMES:
        count = min(LAYERS, request.model.num_hidden_layers) if name == "layer" else 1
        with torch.device(device.torch_device):
            parts = [make_part(name, request.model, shape, request.head) for _ in range(count)]
        forward, backward = _fastest(parts, request, device, clock)
        found[name] = forward / count, backward / count
    return found


def measure_step(request: PlanRequest, device: Device, clock: Clock) -> float:
    """Seconds of the optimiser's step for one value, with the norm of the gradients."""
    shape = Shape(rows=1, length=request.sequence_length, masked=1, attention=request.attention)
    with torch.device(device.torch_device):
        layers = nn.ModuleList(make_part("layer", request.model, shape, request.head) for _ in range(LAYERS))
    preset = find_preset(request.optimiser)
    optimiser = device.optimiser(preset, group_parameters(preset, layers.named_parameters()))
    weights = list(layers.parameters())
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    gradients = [weight.grad for weight in weights if weight.grad is not None]

    times = []
    for _ in range(1 + REPETITIONS):
        start = clock()
        LOCAL_NORMS.all(gradients)
        optimiser.step()
        _wait(device, weights[-1])
        times.append(clock() - start)
    return min(times[1:]) / sum(weight.numel() for weight in weights)


def _fastest(
    parts: Sequence[Part], request: PlanRequest, device: Device, clock: Clock
) -> tuple[float, float]:
    """The shortest forward and the shortest backward pass through the parts, one after another."""
    for part in parts:
        for weight in part.parameters():
            weight.grad = torch.zeros_like(weight)
    times = [_passes(parts, request, device, clock) for _ in range(1 + REPETITIONS)]
    forwards, backwards = zip(*times[1:], strict=True)
    return min(forwards), min(backwards)


def _passes(parts: Sequence[Part], request: PlanRequest, device: Device, clock: Clock) -> tuple[float, float]:
    """The times of one forward and one backward pass."""
    with torch.device(device.torch_device):
        handed = tuple(one.requires_grad_() for one in parts[0].given(TYPES[request.precision]))
    start = clock()
    with device.autocast(request.precision):
        for part in parts:
            handed = part(*handed)
    _wait(device, handed[-1])
    middle = clock()
    gradients = [torch.ones_like(one) for one in handed]
    torch.autograd.backward(handed, gradients)
    _wait(device, gradients[0])
    return middle - start, clock() - middle


def _wait(device: Device, tensor: Tensor) -> None:
    """Wait until the device has done all work up to the tensor."""
    device.to_host(tensor.reshape(-1)[:1])
