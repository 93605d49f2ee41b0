"""LAMB (You et al. 2020). Without trust ratios it is AdamW, or the Adam of the original BERT."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.update.optimiser import GroupSettings, Norms, Numbers, Optimiser, Tensors

_NO_CORRECTION = 1e30
"""A number of steps so large that the bias corrections are 1."""


class Lamb(Optimiser):
    """Per tensor w, with bias-corrected averages m of the gradient and v of its square (if debias):

        u = m / (sqrt(v) + eps) + weight_decay * w
        w = w - lr * trust * u,  trust = |w| / |u|, 1 if either norm is 0 or the group has none

    Parameter groups may set weight_decay and trust. Separate query, key and value parameters have a
    ratio each, as Graphcore gives one to each part of a fused parameter. The state is fp32.
    """

    moments = "exp_avg", "exp_avg_sq"

    @staticmethod
    def fused(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
        """A step by PyTorch's fused AdamW, which reads and writes each tensor once.

        With trust ratios it changes zeros by a rate of -1, which gives m / (sqrt(v) + eps).
        """
        rate = numbers.rate
        assert isinstance(rate, Tensor)
        if not settings.trust:
            fused_adamw(tensors.weights, tensors, numbers, settings, rate, settings.weight_decay)
            return
        sizes = [weight.numel() for weight in tensors.weights]
        flat = torch.zeros(sum(sizes), device=rate.device)
        parts = zip(torch.split(flat, sizes), tensors.weights, strict=True)
        u = [part.view_as(weight) for part, weight in parts]
        fused_adamw(u, tensors, numbers, settings, torch.full_like(rate, -1.0), 0.0)
        if settings.weight_decay:
            torch._foreach_add_(u, tensors.weights, alpha=settings.weight_decay)
        # A rate of 0 leaves every bit of a weight: the product is a zero of the other sign, and u is +0.0
        # where the weight is a zero.
        rates = trust_ratios(tensors.weights, u, settings.norms) * -(
            rate if numbers.skip is None else rate * (1 - numbers.skip)
        )
        for weight, change, factor in zip(tensors.weights, u, rates.unbind(), strict=True):
            weight.addcmul_(change, factor)  # lists with 0-dim tensors would run tensor by tensor too


def trust_ratios(weights: Sequence[Tensor], changes: Sequence[Tensor], norms: Norms) -> Tensor:
    """The norm of each weight over that of its change, 1 if either is 0."""
    w_norms, u_norms = norms.each(weights), norms.each(changes)
    return torch.where((w_norms > 0) & (u_norms > 0), w_norms / u_norms, 1.0)


def fused_adamw(
    targets: list[Tensor],
    tensors: Tensors,
    numbers: Numbers,
    settings: GroupSettings,
    rate: Tensor,
    decay: float,
) -> None:
    """Change the targets by PyTorch's AdamW, unless the step is skipped."""
    count, (means, squares) = numbers.applied, tensors.moments
    assert isinstance(count, Tensor)
    if not settings.debias:
        count = torch.full_like(count, _NO_CORRECTION)
    torch._fused_adamw_(
        targets,
        tensors.gradients,
        means,
        squares,
        [],
        [count] * len(targets),
        lr=rate,
        beta1=settings.betas[0],
        beta2=settings.betas[1],
        weight_decay=decay,
        eps=settings.eps,
        amsgrad=False,
        maximize=False,
        grad_scale=numbers.divisor,
        found_inf=numbers.skip,
    )
