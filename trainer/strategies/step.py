"""The end of an update: clip the averaged gradients and change the weights, or skip the update.

The device decides whether to skip, so the host never waits: a norm that is infinite or not a number leaves
weights, moments and the count of updates bit for bit. In fp32 nothing is skipped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.devices.loss_scale import LossScale
from trainer.errors import NotFiniteError
from trainer.optim.norms import Norms
from trainer.optim.optimiser import Numbers, Optimiser, Rule, Tensors

MOST_IN_A_ROW = 20
"""Updates that may be skipped in a row without a loss scale, which could end such a row."""

_DIVERGED = "the training has diverged: use another precision, or a smaller learning rate"


class Step(Protocol):
    """The end of an update; ``applied`` counts the updates that changed the weights.

    gradient_norm: the global norm of the last update's gradients before clipping, 0-dim on the device; None
    where the step computes none.
    """

    applied: int

    @property
    def gradient_norm(self) -> Tensor | None: ...

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        """Change the weights by the averaged gradients, still multiplied by the loss scale.

        number: the update's in its phase, from 1; one more than that of the update before.
        """

    def read_skipped(self) -> int:
        """Updates skipped since the start; NotFiniteError names the update that ended the training."""


def make_step(config: Config, device: Device, optimiser: torch.optim.Optimizer, scale: LossScale) -> Step:
    """The end of the device's updates."""
    if device.own_step:
        return OptimiserStep(config, device, optimiser)
    assert isinstance(optimiser, Optimiser)
    return FunctionStep(config, device, optimiser, scale)


class OptimiserStep:
    """Clipping by the device, then the optimiser's ``step``; no update is skipped."""

    def __init__(self, config: Config, device: Device, optimiser: torch.optim.Optimizer) -> None:
        self.applied = 0
        self.gradient_norm: Tensor | None = None
        self._device = device
        self._optimiser = optimiser
        clips = config.update.clipping_point == "per_update" and not device.clips_in_step
        self._max_norm = config.update.max_grad_norm if clips else None

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        if self._max_norm is not None:
            self.gradient_norm = self._device.clip_(gradients, self._max_norm)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self.applied += 1

    def read_skipped(self) -> int:
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Constants of every step: clipping, rule, and norms over all processes that hold the model."""

    max_norm: float | None
    skips: bool
    rule: Rule
    norms: Norms


class Counts(NamedTuple):
    """Counts of updates on the device, 0-dim fp32.

    applied: those that changed the weights, of the phase. made, skipped: since the start of this process.
    in_a_row: skipped since the last applied one. failed: the first update, counted like ``made``, whose
    skipping ends the training, else 0; norm: its gradients', scale: its loss scale. last_norm: the gradients'
    of the last update.
    """

    applied: Tensor
    made: Tensor
    skipped: Tensor
    in_a_row: Tensor
    failed: Tensor
    norm: Tensor
    scale: Tensor
    last_norm: Tensor

    def add(self, overflow: Tensor, norm: Tensor, scale: LossScale) -> None:
        """Count one update and adjust the loss scale."""
        before = scale.value.clone()
        self.made.add_(1)
        self.applied.add_(~overflow)
        self.skipped.add_(overflow)
        self.in_a_row.copy_(torch.where(overflow, self.in_a_row + 1, 0.0))
        fails = (overflow & (self.in_a_row >= MOST_IN_A_ROW)) if scale.is_one else scale.update(overflow)
        first = fails & (self.failed == 0)
        for kept, value in ((self.failed, self.made), (self.norm, norm), (self.scale, before)):
            kept.copy_(torch.where(first, value, kept))


def clip_and_step(
    groups: Sequence[tuple[Tensors, Any]], rate: Tensor, counts: Counts, scale: LossScale, plan: Plan
) -> None:
    """Clip the gradients and change the weights of all groups; counts and scale follow."""
    norm, divisor, skip = None, None, None
    if plan.skips or plan.max_norm is not None:
        norm = plan.norms.all([gradient for tensors, _ in groups for gradient in tensors.gradients])
        norm = norm if scale.is_one else norm / scale.value
        counts.last_norm.copy_(norm)
    if plan.max_norm is not None:
        assert norm is not None
        divisor = (norm / plan.max_norm).clamp(min=1.0)
    if not scale.is_one:
        divisor = scale.value.clone() if divisor is None else divisor * scale.value
    if plan.skips:
        assert norm is not None
        overflow = ~norm.isfinite()
        skip = overflow.to(rate.dtype)
        counts.add(overflow, norm, scale)
    else:
        counts.applied.add_(1)
    # A skipped first update must not divide by a bias correction of 0.
    numbers = Numbers(rate, counts.applied.clamp(min=1.0), divisor, skip)
    for tensors, settings in groups:
        plan.rule(tensors, numbers, settings)


class FunctionStep:
    """Clipping and the optimiser as one function over tensors."""

    def __init__(
        self,
        config: Config,
        device: Device,
        optimiser: Optimiser,
        scale: LossScale,
        function: Callable[..., None] = clip_and_step,
    ) -> None:
        self._optimiser = optimiser
        self._scale = scale
        self._to_host = device.to_host
        self._chunk = optimiser.chunk if optimiser.fuses else None
        clips = config.update.clipping_point == "per_update"
        self._plan = Plan(
            max_norm=config.update.max_grad_norm if clips else None,
            skips=config.update.precision != "fp32",
            rule=optimiser.fused if optimiser.fuses else optimiser.rule,
            norms=optimiser.norms,
        )
        self._function = function
        self._counts = Counts(*(torch.zeros((), device=device.torch_device) for _ in Counts._fields))
        self._rate = torch.zeros((), device=device.torch_device)
        self._first: int | None = None

    @torch.no_grad()
    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        self._first = number if self._first is None else self._first
        self._rate.fill_(rate)
        groups = self._optimiser.tensors(self._chunk)
        self._function(groups, self._rate, self._counts, self._scale, self._plan)

    @property
    def gradient_norm(self) -> Tensor | None:
        has_norm = self._plan.skips or self._plan.max_norm is not None
        return self._counts.last_norm if has_norm and self._first is not None else None

    @property
    def applied(self) -> int:
        return int(self._to_host(self._counts.applied))

    @applied.setter
    def applied(self, count: int) -> None:
        self._counts.applied.fill_(count)

    def read_skipped(self) -> int:
        if not self._plan.skips or self._first is None:
            return 0
        read = dict(zip(Counts._fields, self._to_host(torch.stack(self._counts)).tolist(), strict=True))
        if read["failed"]:
            found = f"update {self._first + int(read['failed']) - 1}: the gradients' norm is {read['norm']}"
            if self._scale.is_one:
                raise NotFiniteError(f"{found}, as in the {MOST_IN_A_ROW - 1} updates before; {_DIVERGED}")
            least = f"at loss scale {read['scale']:g}, the least allowed"
            raise NotFiniteError(f"{found} {least}; {_DIVERGED}")
        return int(read["skipped"])
