"""Base of this package's optimisers: one function over tensors, for which the host never waits."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.optim.norms import LOCAL_NORMS, Norms

CHUNK = 2**22
"""Elements changed at a time, unless the device has another number: they need little temporary memory."""


class Numbers(NamedTuple):
    """Numbers of one step. A tensor is 0-dim, fp32 and on the weights' device.

    applied: steps that changed the weights, this one included. divisor: gradients are divided by it; None
    means 1. skip: 1.0 if weights and moments must stay bit for bit, else 0.0; None means never.
    """

    rate: Tensor | float
    applied: Tensor | float
    divisor: Tensor | None = None
    skip: Tensor | None = None


class Tensors(NamedTuple):
    """Tensors of some weights of one parameter group: lists of the same length, in the same order."""

    weights: list[Tensor]
    gradients: list[Tensor]
    moments: tuple[list[Tensor], ...]


Rule = Callable[[Tensors, Numbers, Any], None]
"""A step, in place, on tensors of one parameter group with its settings."""


class Optimiser(torch.optim.Optimizer):
    """An optimiser whose step is a function: ``rule`` in plain operations, ``fused`` in fused kernels.

    A group's ``step`` counts the calls of ``step``. state_dict holds tensors and plain numbers only.
    chunk: the approximate number of elements changed at a time, which bounds temporary memory. fuses:
    ``step`` uses the fused kernels, which PyTorch has for some devices. norms: of weights and changes.
    sizes: elements that count for the chunks, of weights of which each process holds a part: processes that
    compute norms together must have the same chunks.
    """

    fuses = True
    norms: Norms = LOCAL_NORMS
    rule: Rule
    fused: Rule

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], chunk: int = CHUNK) -> None:
        self.chunk = chunk
        self.sizes: Mapping[Tensor, int] = {}
        super().__init__(params, {**defaults, "step": 0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update each parameter that has a gradient, with the groups' rates."""
        with torch.enable_grad():
            result = closure() if closure else None
        for group in self.param_groups:
            group["step"] += 1
            settings = self.settings(group)
            for tensors in self._tensors(group, self.chunk):
                values = group["lr"], float(group["step"])
                if self.fuses:
                    device = tensors.weights[0].device
                    numbers = Numbers(*(torch.full((), value, device=device) for value in values))
                    self.fused(tensors, numbers, settings)
                else:
                    self.rule(tensors, Numbers(*values), settings)
        return result

    @abstractmethod
    def settings(self, group: dict[str, Any]) -> Any:
        """The group's settings, immutable, without its rate."""

    @abstractmethod
    def moments_of(self, settings: Any) -> tuple[str, ...]:
        """Names of the moments that the state holds for each weight, as PyTorch names them."""

    def tensors(self, chunk: int | None) -> list[tuple[Tensors, Any]]:
        """Tensors of all weights that have a gradient, with settings; None: one entry a group."""
        return [
            (tensors, self.settings(group))
            for group in self.param_groups
            for tensors in self._tensors(group, chunk)
        ]

    def moments(self) -> Iterator[tuple[Tensor, str, Tensor]]:
        """Each weight's moments with their names, in the order of the groups; zeros before the first step."""
        for group in self.param_groups:
            names = self.moments_of(self.settings(group))
            for weight in group["params"]:
                yield from ((weight, name, self._moment(weight, name)) for name in names)

    def _tensors(self, group: dict[str, Any], chunk: int | None) -> Iterator[Tensors]:
        names = self.moments_of(self.settings(group))
        used = [weight for weight in group["params"] if weight.grad is not None]
        ends = accumulate(self.sizes.get(weight, weight.numel()) for weight in used)
        for _, items in groupby(zip(used, ends, strict=True), lambda item: chunk and item[1] // chunk):
            weights = [weight for weight, _ in items]
            gradients = [weight.grad for weight in weights]
            moments = tuple([self._moment(weight, name) for weight in weights] for name in names)
            yield Tensors(weights, gradients, moments)

    def _moment(self, weight: Tensor, name: str) -> Tensor:
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight, dtype=torch.float32, requires_grad=False)
        return state[name]


def overwrite(old: list[Tensor], new: Iterable[Tensor], skip: Tensor | None) -> None:
    """Copy the new values over the old ones, unless the step is skipped."""
    for before, after in zip(old, new, strict=True):
        before.copy_(after if skip is None else torch.where(skip > 0, before, after))


def divided(gradients: list[Tensor], divisor: Tensor | None) -> list[Tensor]:
    """The gradients divided by a 0-dim tensor."""
    return gradients if divisor is None else list(torch._foreach_mul(gradients, 1 / divisor))
