"""Timed updates: a model of a few layers that is trained as in a run, with the time of each part."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.devices.device import Device
from trainer.extensions.splitting.plan.parts import (
    NAMES,
    EmbeddingsPart,
    HeadsPart,
    ModelPart,
    Shape,
    Tensors,
    make_part,
)
from trainer.extensions.splitting.plan.request import PlanRequest
from trainer.update.step import make_step
from trainer.update.strategy import UpdateNumber, part_seeds

LAYERS = 4
"""Most layers that are run: with so many, weights do not stay in a processor's cache until their next use."""

Clock = Callable[[], float]
"""Seconds since some moment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateTimes:
    """Times of an update with one micro-batch.

    passes: seconds of the forward and the backward pass of a part of each name. step: of clipping and the
    optimiser, seconds for one value.
    """

    passes: Mapping[str, tuple[float, float]]
    step: float


class TimedUpdates:
    """Updates of embeddings, at most LAYERS layers and heads, on a micro-batch of so many rows.

    As in a run, each part seeds its dropout, all forward passes are done when the backward pass begins,
    gradients are added to those that are there, and the configured clipping and optimiser change all weights.
    """

    def __init__(self, request: PlanRequest, device: Device, rows: int, clock: Clock) -> None:
        self._device, self._clock, self._precision = device, clock, request.precision
        parts = _make_parts(request, device, rows)
        self._sections = {name: TimedSection(parts[name]) for name in NAMES}
        model = nn.ModuleList(part for name in NAMES for part in parts[name])
        self._parts = len(model)
        self.weights: list[Tensor] = list(model.parameters())
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight)
        self._step = make_step(device.config, device, model.named_parameters())
        self._number = 0
        self._last = 0.0

    def run(self, *, recomputes: bool = False) -> UpdateTimes:
        """Make one update at rate 0. recomputes: layers keep only their input between their passes."""
        self._last = self._clock()
        forward, loss = self._forward(recomputes)
        backward = self._backward(loss)
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        self._number += 1
        self._step.take(gradients, 0.0, self._number)
        step = self._lap(self.weights[-1]) / sum(weight.numel() for weight in self.weights)
        return UpdateTimes(passes={name: (forward[name], backward[name]) for name in NAMES}, step=step)

    def _forward(self, recomputes: bool) -> tuple[dict[str, float], Tensor]:
        """The seconds of a part of each name, and the loss."""
        at = UpdateNumber(0, self._number, self._number)
        seeds = iter(part_seeds(self._device.config.data.seed, at, 0, self._parts))
        seconds, handed = dict[str, float](), Tensors()
        for name, section in self._sections.items():
            with self._device.autocast(self._precision):
                handed = section.forward(handed, self._device, seeds, recomputes and name == "layer")
            seconds[name] = self._lap(handed[-1]) / len(section)
        return seconds, handed[-1]

    def _backward(self, loss: Tensor) -> dict[str, float]:
        """The seconds of a part of each name."""
        seconds = dict[str, float]()
        gradients: Sequence[Tensor | None] = [self._step.scale.scale(torch.ones_like(loss))]
        for name, section in reversed(self._sections.items()):
            gradients = section.backward(gradients)
            seconds[name] = self._lap(section.weight_gradient) / len(section)
        self._device.after_backward()
        return seconds

    def _lap(self, tensor: Tensor) -> float:
        """The seconds since the last lap, when the device has done all work up to the tensor."""
        self._device.to_host(tensor.reshape(-1)[:1])
        before, self._last = self._last, self._clock()
        return self._last - before


class TimedSection:
    """Parts of one name, one after another, with a graph of their own."""

    def __init__(self, parts: Sequence[ModelPart]) -> None:
        self._parts = parts
        self._given: Tensors = ()
        self._handed: Tensors = ()

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def weight_gradient(self) -> Tensor:
        """A gradient that the end of the backward pass makes."""
        gradient = next(self._parts[0].parameters()).grad
        assert gradient is not None
        return gradient

    def forward(self, given: Tensors, device: Device, seeds: Iterator[int], recomputes: bool) -> Tensors:
        """Run the parts, each with a seed of its own. Returns the tensors that the last one hands over."""
        self._given = handed = tuple(one.detach().requires_grad_() for one in given)
        run = partial(checkpoint, _run, use_reentrant=False) if recomputes else _run
        for part in self._parts:
            handed = run(part, device, next(seeds), handed)
        self._handed = handed
        return handed

    def backward(self, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The backward pass: from gradients of the outputs to those of the inputs. None: not used."""
        used = [place for place, gradient in enumerate(gradients) if gradient is not None]
        torch.autograd.backward([self._handed[place] for place in used], [gradients[place] for place in used])
        found = [one.grad for one in self._given]
        self._given = self._handed = ()
        return found


def _run(part: ModelPart, device: Device, seed: int, given: Tensors) -> Tensors:
    device.seed(seed)
    handed: Tensors = part(*given)
    return handed


def _make_parts(request: PlanRequest, device: Device, rows: int) -> dict[str, list[ModelPart]]:
    """The parts of each name on the device, with first weights. The heads use the word embeddings."""
    shape = Shape(
        rows=rows,
        length=request.sequence_length,
        masked=request.masked_slots,
        attention=request.attention,
        flat_attention=device.attention,
    )
    counts = dict.fromkeys(NAMES, 1) | {"layer": min(LAYERS, request.model.num_hidden_layers)}
    with torch.device(device.torch_device):
        made = {
            name: [make_part(name, request.model, shape, request.head) for _ in range(count)]
            for name, count in counts.items()
        }
    for part in (one for parts in made.values() for one in parts):
        for module in part.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=request.model.initializer_range)
    (embeddings,), (heads,) = made["embeddings"], made["heads"]
    if isinstance(embeddings, EmbeddingsPart) and isinstance(heads, HeadsPart):
        words = embeddings.embeddings.word_embeddings.weight
        assert isinstance(words, nn.Parameter)
        heads.words = words
    return made
