"""The end of an update in 16 bits, which is skipped where a gradient is not finite.

The device decides whether to skip, so the host never waits: a norm that is infinite or not a number leaves
weights, moments and the count of updates bit for bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.errors import NotFiniteError
from trainer.update.adaptive_scale import AdaptiveScale, make_scale
from trainer.update.optimiser import Norms, Numbers, Optimiser, Rule
from trainer.update.step import Groups, WeightStep

MOST_IN_A_ROW = 20
"""Updates that may be skipped in a row without a loss scale, which could end such a row."""

_DIVERGED = "the training has diverged: use another precision, or a smaller learning rate"


class SkipCounts(NamedTuple):
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

    def count_and_rescale(self, overflow: Tensor, norm: Tensor, scale: AdaptiveScale) -> None:
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
    groups: Groups,
    rate: Tensor,
    counts: SkipCounts,
    scale: AdaptiveScale,
    *,
    max_norm: float | None,
    rule: Rule,
    norms: Norms,
) -> None:
    """Clip the gradients, change the weights of all groups, and update the counts and the scale."""
    divisor = None
    norm = norms.all([gradient for tensors, _ in groups for gradient in tensors.gradients])
    norm = norm if scale.is_one else norm / scale.value
    counts.last_norm.copy_(norm)
    if max_norm is not None:
        divisor = (norm / max_norm).clamp(min=1.0)
    if not scale.is_one:
        divisor = scale.value.clone() if divisor is None else divisor * scale.value
    overflow = ~norm.isfinite()
    skip = overflow.to(rate.dtype)
    counts.count_and_rescale(overflow, norm, scale)
    # A skipped first update must not divide by a bias correction of 0.
    numbers = Numbers(rate, counts.applied.clamp(min=1.0), divisor, skip)
    for tensors, settings in groups:
        rule(tensors, numbers, settings)


class SkippingStep(WeightStep):
    """Clipping and the optimiser as one function over tensors, which counts the updates that it skips.

    function: ``clip_and_step``; benchmarks put a compiled form of it in its place.
    """

    function: Callable[..., None] = staticmethod(clip_and_step)

    scale: AdaptiveScale

    def __init__(self, config: Config, device: Device, optimiser: Optimiser) -> None:
        super().__init__(config, device, optimiser)
        self.scale = make_scale(config, device.torch_device)
        self._first: int | None = None
        self._told = 0
        self._counts = SkipCounts(*(torch.zeros((), device=device.torch_device) for _ in SkipCounts._fields))
        self._counts = self._counts._replace(applied=self._applied, last_norm=self._norm)

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        self._first = number if self._first is None else self._first
        super().take(gradients, rate, number)

    def _change(self, groups: Groups) -> None:
        self.function(
            groups,
            self._rate,
            self._counts,
            self.scale,
            max_norm=self._max_norm,
            rule=self._rule,
            norms=self.optimiser.norms,
        )
        self.gradient_norm = self._norm

    def tell_skipped(self, updates: int) -> str:
        new, self._told = self.read_skipped() - self._told, self._told
        self._told += new
        now = "" if self.scale.is_one else f"; the loss scale is now {float(self.scale.value):g}"
        return f"{new} of the last {updates} updates skipped: a gradient was not finite{now}" if new else ""

    def read_skipped(self) -> int:
        """Updates skipped since the start."""
        if self._first is None:
            return 0
        read = dict(zip(SkipCounts._fields, self._to_host(torch.stack(self._counts)).tolist(), strict=True))
        if read["failed"]:
            found = f"update {self._first + int(read['failed']) - 1}: the gradients' norm is {read['norm']}"
            if self.scale.is_one:
                raise NotFiniteError(f"{found}, as in the {MOST_IN_A_ROW - 1} updates before; {_DIVERGED}")
            least = f"at loss scale {read['scale']:g}, the least allowed"
            raise NotFiniteError(f"{found} {least}; {_DIVERGED}")
        return int(read["skipped"])
