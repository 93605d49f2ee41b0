"""Steps of the optimisers in plain operations, for devices without fused kernels and for compilers."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from trainer.update.lamb import trust_ratios
from trainer.update.optimiser import GroupSettings, Numbers, Tensors


def step_of_lamb(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
    """The step of ``Lamb``."""
    (beta1, beta2), (means, squares) = settings.betas, tensors.moments
    correction1, root = corrections(numbers.applied, settings)
    g = divided(tensors.gradients, numbers.divisor)
    m = torch._foreach_lerp(means, g, 1 - beta1)
    v = torch._foreach_addcmul(torch._foreach_mul(squares, beta2), g, g, 1 - beta2)
    u = torch._foreach_mul(torch._foreach_sqrt(v), 1 / root)
    u = torch._foreach_div(m, torch._foreach_add(u, settings.eps))
    u = torch._foreach_mul(u, 1 / correction1)
    if settings.weight_decay:
        u = torch._foreach_add(u, tensors.weights, alpha=settings.weight_decay)
    if settings.trust:
        u = torch._foreach_mul(u, list(trust_ratios(tensors.weights, u, settings.norms).unbind()))
    changed = torch._foreach_sub(tensors.weights, torch._foreach_mul(u, numbers.rate))
    overwrite(tensors.weights, changed, numbers.skip)
    overwrite(means, m, numbers.skip)
    overwrite(squares, v, numbers.skip)


def step_of_sgd(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
    """The step of ``Sgd``."""
    b = divided(tensors.gradients, numbers.divisor)
    if settings.weight_decay:
        b = list(torch._foreach_add(b, tensors.weights, alpha=settings.weight_decay))
    if settings.momentum:
        (buffers,) = tensors.moments
        b = list(torch._foreach_add(torch._foreach_mul(buffers, settings.momentum), b))
        overwrite(buffers, b, numbers.skip)
    changed = torch._foreach_sub(tensors.weights, torch._foreach_mul(b, numbers.rate))
    overwrite(tensors.weights, changed, numbers.skip)


def corrections(count: Tensor | float, settings: GroupSettings) -> tuple[Tensor | float, Tensor | float]:
    """1 - beta1 ** count, the mean's bias correction, and the root of the square's, without cancellation."""
    if not settings.debias:
        return 1.0, 1.0
    log1, log2 = (math.log(beta) if beta else -math.inf for beta in settings.betas)
    if isinstance(count, Tensor):
        return -torch.expm1(count * log1), torch.sqrt(-torch.expm1(count * log2))
    return -math.expm1(count * log1), math.sqrt(-math.expm1(count * log2))


def overwrite(old: list[Tensor], new: Iterable[Tensor], skip: Tensor | None) -> None:
    """Copy the new values over the old ones, unless the step is skipped."""
    for before, after in zip(old, new, strict=True):
        before.copy_(after if skip is None else torch.where(skip > 0, before, after))


def divided(gradients: list[Tensor], divisor: Tensor | None) -> list[Tensor]:
    """The gradients divided by a 0-dim tensor."""
    return gradients if divisor is None else list(torch._foreach_mul(gradients, 1 / divisor))
