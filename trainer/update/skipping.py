"""The optimiser step in 16-bit precision, which is skipped if a gradient is not finite.

The device decides whether to skip, so that the host never waits. If the norm of the gradients is infinite or
not a number, then weights, moments and the count of applied updates keep every bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.errors import NotFiniteError
from trainer.update.adaptive_scale import AdaptiveScale, make_scale
from trainer.update.optimiser import Norms, Optimiser, Rule, StepScalars
from trainer.update.step import Groups, OptimiserStep

MOST_SKIPPED_IN_A_ROW = 20
"""Number of updates skipped in a row at which a training without a loss scale ends.

With a loss scale no such limit is needed. Each skipped update makes the scale smaller, until gradients are
finite again, or until the training ends at the smallest scale.
"""

_DIVERGED = "the training has diverged: use another precision, or a smaller learning rate"


class SkipCounts(NamedTuple):
    """Counts of updates, as 0-dim fp32 tensors on the device.

    applied: updates of the phase that changed the weights.
    made: updates since the start of this process, whether skipped or not.
    skipped: skipped updates since the start of this process.
    in_a_row: updates skipped since the last update that changed the weights.
    failed: number of the first update whose skipping ends the training, counted like
        ``made``. 0 if there is none.
    norm: gradient norm of the update ``failed``.
    scale: loss scale of the update ``failed``.
    last_norm: gradient norm of the most recent update.
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
        """Count an update and adjust the loss scale.

        overflow: 0-dim bool tensor, True if the update is skipped.
        norm: norm of the update's gradients.
        """
        before = scale.value.clone()
        self.made.add_(1)
        self.applied.add_(~overflow)
        self.skipped.add_(overflow)
        self.in_a_row.copy_(torch.where(overflow, self.in_a_row + 1, 0.0))
        fails = (
            (overflow & (self.in_a_row >= MOST_SKIPPED_IN_A_ROW)) if scale.is_one else scale.update(overflow)
        )
        first = fails & (self.failed == 0)
        # Keep the number, norm and scale of the first failure, because describe_skipped reads them only some
        # updates later.
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
    """Clip the gradients, change the weights of all groups, and update the counts and the loss scale.

    This is one function over tensors, without a branch on their values, so that it can be compiled.
    rate: learning rate, 0-dim.
    max_norm: norm to which the gradients are clipped. None for no clipping.
    rule: function that makes the optimiser's step on a group.
    norms: object that computes the norm of the gradients.
    """
    divisor = None
    # The gradients are multiplied by the loss scale, so their true norm is the computed norm divided by the
    # scale. ``divisor`` removes the scale and clips in one operation: with norm 4, max_norm 1 and scale 1024
    # it is 4096.
    norm = norms.compute_total([gradient for tensors, _ in groups for gradient in tensors.gradients])
    norm = norm if scale.is_one else norm / scale.value
    counts.last_norm.copy_(norm)
    if max_norm is not None:
        divisor = (norm / max_norm).clamp(min=1.0)
    if not scale.is_one:
        divisor = scale.value.clone() if divisor is None else divisor * scale.value
    # A single infinite gradient makes the norm infinite, so the norm alone shows whether to skip the update.
    overflow = ~norm.isfinite()
    skip = overflow.to(rate.dtype)
    counts.count_and_rescale(overflow, norm, scale)
    # If the first update is skipped, ``applied`` is 0, and the bias correction would divide by 0.
    numbers = StepScalars(rate, counts.applied.clamp(min=1.0), divisor, skip)
    for tensors, settings in groups:
        rule(tensors, numbers, settings)


class SkippingOptimiserStep(OptimiserStep):
    """Optimiser step for 16-bit precision.

    It clips, changes the weights, and counts the updates that it skips.

    function: the function ``clip_and_step``. Benchmarks replace it with a compiled version.
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

    def describe_skipped(self, updates: int) -> str:
        new, self._told = self.read_skipped() - self._told, self._told
        self._told += new
        now = "" if self.scale.is_one else f"; the loss scale is now {float(self.scale.value):g}"
        return f"{new} of the last {updates} updates skipped: a gradient was not finite{now}" if new else ""

    def read_skipped(self) -> int:
        """Return the number of updates that were skipped since the start of this process.

        Waits for the device.

        Raises NotFiniteError if the training has diverged.
        """
        if self._first is None:
            return 0
        read = dict(zip(SkipCounts._fields, self._to_host(torch.stack(self._counts)).tolist(), strict=True))
        if read["failed"]:
            found = f"update {self._first + int(read['failed']) - 1}: the gradients' norm is {read['norm']}"
            if self.scale.is_one:
                raise NotFiniteError(
                    f"{found}, as in the {MOST_SKIPPED_IN_A_ROW - 1} updates before; {_DIVERGED}"
                )
            least = f"at loss scale {read['scale']:g}, the least allowed"
            raise NotFiniteError(f"{found} {least}; {_DIVERGED}")
        return int(read["skipped"])
