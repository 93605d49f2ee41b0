"""Measured times of the parts of a model.

They are measured on the run's devices, in updates that are made as in training.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertdata.io.freed_memory import keep_less_freed_memory
from trainer.devices.device import HOST, Device
from trainer.splitting.plan.costs import Costs, PassTimes, Seconds, interpolate, interpolate_costs
from trainer.splitting.plan.parts import (
    ModelPart,
    Tensors,
    list_layer_names,
    list_part_names,
    make_part,
    make_shape,
)
from trainer.splitting.plan.request import PlanRequest, list_meshes
from trainer.update.make_step import make_optimiser_step
from trainer.update.strategy import UpdateNumber, draw_part_seeds
from trainer.workers.collective import Collective

MOST_TOKENS = 8192
"""Number of tokens in the largest micro-batch that is measured.

The times of larger micro-batches are extrapolated linearly.
"""

_LARGE = 1 << 20
"""Size in bytes from which glibc gets a tensor's memory from the system and returns it as
soon as it is freed.

Without this limit, glibc keeps freed memory of up to 50 % of the memory in use.
"""

REPETITIONS = 5
"""Number of updates that are timed, after a first update that is not timed.

The shortest time is used, because other work on the machine can only make an update longer.
"""

LAYERS = 4
"""Largest number of equal layers that are run in a measurement.

Four layers have too many weights for a processor's cache. So the weights are read from
memory, as in training.
"""

Clock = Callable[[], float]
"""Function that returns seconds since some fixed moment."""


class Profile(NamedTuple):
    """Measured times of an update with a single micro-batch.

    passes: times of one part with each name.
    step: seconds per weight that clipping and the optimiser's step take.
    """

    passes: Seconds
    step: float


def measure_costs(
    request: PlanRequest, device: Device, workers: Collective, clock: Clock = time.perf_counter
) -> Costs:
    """Return the costs of the model's parts, with times that are measured on the device.

    This takes some seconds.

    All workers must call this together, because workers on one machine share caches and memory. All get the
    same result, which is that of the slowest worker, because every update waits for it. Updates are timed
    with two sizes of micro-batches: the smallest and the largest that a plan may use and that have at most
    MOST_TOKENS tokens. The times of other sizes lie on a line through these two.
    clock: function that returns the time in seconds.
    """
    rows = sorted({mesh.rows for mesh in list_meshes(request)})
    runnable = [size for size in rows if size * request.sequence_length <= MOST_TOKENS] or rows[:1]
    least, most = runnable[0], runnable[-1]
    return_memory(device)  # The training of split models does this too, and it makes processors slower.
    workers.barrier()
    low = high = measure_updates(request, device, least, clock)
    if most > least:
        high = measure_updates(request, device, most, clock)
    gathered = workers.gather([low._asdict(), high._asdict()])
    low, high = max(
        ([*map(_load_profile, pair)] for pair in gathered), key=lambda pair: _sum_passes(pair[1], request)
    )
    known = {least: low.passes, most: high.passes}
    return interpolate_costs(request, partial(interpolate, known), high.step)


def return_memory(device: Device) -> None:
    """Make this process return freed memory to the system at once. This has an effect only on processors."""
    if device.torch_device.type == HOST.type:
        keep_less_freed_memory(_LARGE)


def find_attention(device: Device) -> str:
    """Return how the device computes attention: "fused", "scores" or "flat", as ``PlanRequest`` explains."""
    if device.torch_device.type != HOST.type:
        return "fused"
    return "scores" if device.config.loading.rows or device.needs_rows else "flat"


def measure_updates(request: PlanRequest, device: Device, rows: int, clock: Clock) -> Profile:
    """Return the shortest times of several updates on micro-batches of ``rows`` rows.

    If a plan may compute activations again, updates with and without this recomputation alternate. The
    difference of their times is the cost of the recomputation.
    """
    updates = TimedUpdates(request, device, rows, clock)
    updates.run()  # not timed: it creates the optimiser's moments and loads kernels
    plain, recomputed = [], []
    for _ in range(REPETITIONS):
        plain.append(updates.run())
        if request.split.recompute != "never":
            recomputed.append(updates.run(recomputes=True))
    passes = {name: _find_least_times(plain, name) for name in list_part_names(request.model)}
    for name in list_layer_names(request.model) if recomputed else ():
        more = sum(_find_least_times(recomputed, name)) - sum(_find_least_times(plain, name))
        passes[name] = passes[name]._replace(recompute=max(0.0, more))
    return Profile(passes, step=min(one.step for one in plain))


def _find_least_times(updates: Sequence[Profile], name: str) -> PassTimes:
    """Return the shortest times of a part's passes among several updates.

    name: name of the part.
    """
    return PassTimes(*map(min, zip(*(one.passes[name] for one in updates), strict=True)))


def _sum_passes(profile: Profile, request: PlanRequest) -> float:
    """Return the seconds that all passes through the whole model take."""
    passes = [profile.passes[name] for name in ("embeddings", *list_layer_names(request.model), "heads")]
    return sum(times.forward + times.backward for times in passes)


def _load_profile(values: dict[str, Any]) -> Profile:
    """Return the profile from the values that another worker has sent as JSON."""
    return Profile({name: PassTimes(*times) for name, times in values["passes"].items()}, values["step"])


class TimedUpdates:
    """Object that makes timed updates of a small model: embeddings, up to LAYERS layers of
    each name, and heads.

    The updates are made as in training. The dropout of each part is seeded. All forward passes are made
    before the backward pass starts. New gradients are added to existing gradients. Then the gradients are
    clipped as configured, and the optimiser changes all weights.
    """

    def __init__(self, request: PlanRequest, device: Device, rows: int, clock: Clock) -> None:
        self._device, self._clock, self._precision = device, clock, request.update.precision
        self._parts = _make_parts(request, device, rows)
        self._layers = set(list_layer_names(request.model))
        model = nn.ModuleList(part for parts in self._parts.values() for part in parts)
        self._count = len(model)
        self.weights: list[Tensor] = list(model.parameters())
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight)
        self._step = make_optimiser_step(device.config, device, model.named_parameters())
        self._number = 0
        self._last = 0.0

    def run(self, *, recomputes: bool = False) -> Profile:
        """Make one update with learning rate 0 and return its times.

        recomputes: whether layers keep only their input after the forward pass, and compute all other
            activations again in the backward pass.
        """
        self._last = self._clock()
        given, handed = dict[str, Tensors](), dict[str, Tensors]()
        forward = self._run_forward(given, handed, recomputes)
        backward = self._run_backward(given, handed)
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        self._number += 1
        self._step.take(gradients, 0.0, self._number)
        step = self._time_lap(self.weights[-1]) / sum(weight.numel() for weight in self.weights)
        return Profile({name: PassTimes(forward[name], backward[name]) for name in self._parts}, step)

    def _run_forward(
        self, given: dict[str, Tensors], handed: dict[str, Tensors], recomputes: bool
    ) -> dict[str, float]:
        """Run the forward pass of all parts. Return the seconds that one part of each name takes.

        Parts with the same name form a separate autograd graph, so that their backward pass can
        be timed separately.
        given: receives the inputs of each name's graph.
        handed: receives the outputs of each name's graph.
        recomputes: whether layers keep only their input.
        """
        # Detach the inputs of the parts with the same name, so that the backward pass ends there and can be
        # timed alone. The time of one part is the time divided by the number of these parts.
        at = UpdateNumber(0, self._number, self._number)
        seeds = iter(draw_part_seeds(self._device.config.data.seed, at, 0, self._count))
        seconds, tensors = dict[str, float](), Tensors()
        for name in self._parts:
            given[name] = tensors = tuple(one.detach().requires_grad_() for one in tensors)
            is_kept = not (recomputes and name in self._layers)
            run = _run_part if is_kept else partial(checkpoint, _run_part, use_reentrant=False)
            with self._device.autocast(self._precision):
                for part in self._parts[name]:
                    tensors = run(part, self._device, next(seeds), tensors)
            handed[name] = tensors
            seconds[name] = self._time_lap(tensors[-1]) / len(self._parts[name])
        return seconds

    def _run_backward(self, given: dict[str, Tensors], handed: dict[str, Tensors]) -> dict[str, float]:
        """Run the backward pass of all parts. Return the seconds that one part of each name takes.

        Tensors are removed from ``given`` and ``handed`` as soon as they are no longer needed,
        to free their memory.
        given: inputs of each name's graph.
        handed: outputs of each name's graph.
        """
        seconds = dict[str, float]()
        (loss,) = handed[next(reversed(self._parts))]
        gradients: list[Tensor | None] = [self._step.scale.scale(torch.ones_like(loss))]
        for name in reversed(self._parts):
            pairs = zip(handed.pop(name), gradients, strict=True)
            used = [pair for pair in pairs if pair[1] is not None]
            torch.autograd.backward([tensor for tensor, _ in used], [gradient for _, gradient in used])
            gradients = [one.grad for one in given.pop(name)]
            made = next(self._parts[name][0].parameters()).grad
            assert made is not None
            seconds[name] = self._time_lap(made) / len(self._parts[name])
        self._device.after_backward()
        return seconds

    def _time_lap(self, tensor: Tensor) -> float:
        """Wait until the tensor has been computed. Return the seconds since the method's previous call."""
        self._device.to_host(tensor.reshape(-1)[:1])
        before, self._last = self._last, self._clock()
        return self._last - before


def _run_part(part: ModelPart, device: Device, seed: int, given: Tensors) -> Tensors:
    """Run the forward pass of a part, with seeded dropout."""
    device.seed(seed)
    computed: tuple[Tensor, ...] = part(*given)
    return computed


def _make_parts(request: PlanRequest, device: Device, rows: int) -> dict[str, list[ModelPart]]:
    """Return lists of the model's parts by name, on the device, with initial weights.

    The heads use the word embeddings as output weights if the model ties them.
    """
    shape = make_shape(request, rows, device.attention)
    counts = Counter(list_layer_names(request.model))
    with torch.device(device.torch_device):
        made: dict[str, list[Any]] = {
            name: [
                make_part(name, request.model, shape, request.head)
                for _ in range(min(LAYERS, counts.get(name, 1)))
            ]
            for name in list_part_names(request.model)
        }
    for part in (one for parts in made.values() for one in parts):
        for module in part.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=request.model.initializer_range)
    if made["heads"][0].words is not None:
        made["heads"][0].words = made["embeddings"][0].embeddings.word_embeddings.weight
    return made
