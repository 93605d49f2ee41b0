"""The optimisers with their formulas, each in plain operations and with PyTorch's fused kernels.

The plain form is used on devices without fused kernels, and by compilers, which fuse its
operations themselves.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.config.schedules.form import Preset
from trainer.update.optimiser import GroupSettings, Norms, Optimiser, StepScalars, StepTensors

_STEP_WITHOUT_CORRECTION = 1e30
"""A step number so large that Adam's bias corrections, 1 - beta ** step, are 1."""


class Lamb(Optimiser):
    """LAMB. For each weight tensor w, with averages m of the gradient and v of its square:

        u = m / (sqrt(v) + eps) + weight_decay * w
        w = w - lr * trust * u,  trust = |w| / |u|

    The averages are bias-corrected if the setting debias is on. trust is 1 if one of the norms is 0, or if
    the parameter group has no trust ratios. A preset may add eps in another place (``Preset.epsilon_in``).
    Each parameter group has its own weight_decay and trust. Query, key and value are separate parameters with
    a ratio each. Graphcore's program also computes a ratio for each of them, although it stores them in one
    parameter. The moments are fp32.
    """

    moments = "exp_avg", "exp_avg_sq"

    @staticmethod
    def rule(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, in plain operations."""
        (beta1, beta2), (means, squares) = settings.betas, tensors.moments
        correction1, root = compute_bias_corrections(numbers.applied, settings)
        g = divide_gradients(tensors.gradients, numbers.divisor)
        m = torch._foreach_lerp(means, g, 1 - beta1)
        v = torch._foreach_addcmul(torch._foreach_mul(squares, beta2), g, g, 1 - beta2)
        u = torch._foreach_div(m, compute_denominators(v, root, settings))
        u = torch._foreach_mul(u, 1 / correction1)
        if settings.weight_decay:
            u = torch._foreach_add(u, tensors.weights, alpha=settings.weight_decay)
        if settings.trust:
            u = torch._foreach_mul(u, list(compute_trust_ratios(tensors.weights, u, settings.norms).unbind()))
        changed = torch._foreach_sub(tensors.weights, torch._foreach_mul(u, numbers.rate))
        overwrite_tensors(tensors.weights, changed, numbers.skip)
        overwrite_tensors(means, m, numbers.skip)
        overwrite_tensors(squares, v, numbers.skip)

    @staticmethod
    def fused(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, with PyTorch's fused AdamW kernel.

        The kernel reads and writes each tensor only once, but has no trust ratios. For groups with trust
        ratios, it is applied to zeros with a learning rate of -1, which gives m / (sqrt(v) + eps). Decay and
        trust ratio are then applied to this result.
        """
        rate = numbers.rate
        assert isinstance(rate, Tensor)
        if settings.epsilon_in != "corrected":  # PyTorch's kernel adds eps only to the corrected root
            Lamb.rule(tensors, numbers, settings)
            return
        if not settings.trust:
            run_fused_adamw(tensors.weights, tensors, numbers, settings, rate, settings.weight_decay)
            return
        sizes = [weight.numel() for weight in tensors.weights]
        flat = torch.zeros(sum(sizes), device=rate.device)
        parts = zip(torch.split(flat, sizes), tensors.weights, strict=True)
        u = [part.view_as(weight) for part, weight in parts]
        run_fused_adamw(u, tensors, numbers, settings, torch.full_like(rate, -1.0), 0.0)
        if settings.weight_decay:
            torch._foreach_add_(u, tensors.weights, alpha=settings.weight_decay)
        # A skipped update must leave every bit of the weights unchanged. With a rate of 0 the step adds +0.0
        # or -0.0. This does not change a weight that is not 0. To a weight that is 0 the step adds -0.0,
        # which changes neither +0.0 nor -0.0.
        rates = compute_trust_ratios(tensors.weights, u, settings.norms) * -(
            rate if numbers.skip is None else rate * (1 - numbers.skip)
        )
        for weight, change, factor in zip(tensors.weights, u, rates.unbind(), strict=True):
            # This loop costs no extra time, because torch._foreach_ functions with lists of 0-dim tensors
            # also go through the tensors one by one.
            weight.addcmul_(change, factor)


def compute_denominators(
    squares: Iterable[Tensor], root: Tensor | float, settings: GroupSettings
) -> list[Tensor]:
    """Return for each weight the denominator of Adam's change, sqrt(v) + eps.

    squares: the averages v of the squared gradients.
    root: square root of the bias correction of these averages.
    """
    found = list(squares)
    if settings.epsilon_in == "square":
        found = list(torch._foreach_add(found, settings.eps**2))
    roots = list(torch._foreach_sqrt(found))
    if settings.epsilon_in == "uncorrected":
        roots = list(torch._foreach_add(roots, settings.eps))
    roots = list(torch._foreach_mul(roots, 1 / root))
    return list(torch._foreach_add(roots, settings.eps)) if settings.epsilon_in == "corrected" else roots


def compute_trust_ratios(weights: Sequence[Tensor], changes: Sequence[Tensor], norms: Norms) -> Tensor:
    """Return for each weight its norm divided by the norm of its change, or 1 if one of the norms is 0."""
    w_norms, u_norms = norms.compute_each(weights), norms.compute_each(changes)
    return torch.where((w_norms > 0) & (u_norms > 0), w_norms / u_norms, 1.0)


def run_fused_adamw(
    targets: list[Tensor],
    tensors: StepTensors,
    numbers: StepScalars,
    settings: GroupSettings,
    rate: Tensor,
    decay: float,
) -> None:
    """Change the tensors ``targets`` with PyTorch's fused AdamW kernel, unless the step is skipped.

    rate: learning rate.
    decay: weight decay.
    """
    count, (means, squares) = numbers.applied, tensors.moments
    assert isinstance(count, Tensor)
    if not settings.debias:
        count = torch.full_like(count, _STEP_WITHOUT_CORRECTION)
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


class Sgd(Optimiser):
    """SGD with momentum. For each weight tensor w with gradient g, and a momentum buffer b that starts at 0:

    b = momentum * b + g + weight_decay * w
    w = w - lr * b
    """

    @property
    def moments(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.preset.momentum else ()

    @staticmethod
    def rule(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, in plain operations."""
        b = divide_gradients(tensors.gradients, numbers.divisor)
        if settings.weight_decay:
            b = list(torch._foreach_add(b, tensors.weights, alpha=settings.weight_decay))
        if settings.momentum:
            (buffers,) = tensors.moments
            b = list(torch._foreach_add(torch._foreach_mul(buffers, settings.momentum), b))
            overwrite_tensors(buffers, b, numbers.skip)
        changed = torch._foreach_sub(tensors.weights, torch._foreach_mul(b, numbers.rate))
        overwrite_tensors(tensors.weights, changed, numbers.skip)

    @staticmethod
    def fused(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, with PyTorch's fused kernel."""
        assert isinstance(numbers.rate, Tensor)
        torch._fused_sgd_(
            tensors.weights,
            tensors.gradients,
            *(tensors.moments or ([],)),
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            lr=numbers.rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
            grad_scale=numbers.divisor,
            found_inf=numbers.skip,
        )


class StableAdamW(Optimiser):
    """StableAdamW.

    For each weight tensor w, with bias-corrected averages m of the gradient g and v of its square:

        r = rate / max(1, root mean square of g / max(sqrt(v), eps))
        w = w * (1 - r * weight_decay) - r * m / (sqrt(v) + eps)

    If the preset has decays_by_share, the decay is also divided by the preset's learning rate. The moments
    are stored in fp32 and without bias correction, as in AdamW. torch-optimi and ModernBERT's program store
    corrected averages instead, which gives the same numbers except for rounding.
    """

    moments = "exp_avg", "exp_avg_sq"

    def settings(self, group: dict[str, Any]) -> GroupSettings:
        """Return the settings of a parameter group.

        With decays_by_share, the decay is divided by the peak learning rate.
        """
        given = super().settings(group)
        peak = self.preset.lr if self.preset.decays_by_share else 1.0
        return given._replace(weight_decay=given.weight_decay / peak)

    @staticmethod
    def rule(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, in plain operations."""
        (beta1, beta2), (means, squares) = settings.betas, tensors.moments
        correction, root = compute_bias_corrections(numbers.applied, settings)
        g = divide_gradients(tensors.gradients, numbers.divisor)
        m = torch._foreach_lerp(means, g, 1 - beta1)
        v = torch._foreach_addcmul(torch._foreach_mul(squares, beta2), g, g, 1 - beta2)
        roots = list(torch._foreach_mul(torch._foreach_sqrt(v), 1 / root))
        u = torch._foreach_div(torch._foreach_mul(m, 1 / correction), torch._foreach_add(roots, settings.eps))
        rates = list(compute_stable_rates(numbers.rate, tensors, g, roots, settings).unbind())
        changed = list(torch._foreach_mul(u, rates))
        if settings.weight_decay:
            decays = torch._foreach_mul(tensors.weights, torch._foreach_mul(rates, settings.weight_decay))
            changed = list(torch._foreach_add(changed, decays))
        overwrite_tensors(tensors.weights, torch._foreach_sub(tensors.weights, changed), numbers.skip)
        overwrite_tensors(means, m, numbers.skip)
        overwrite_tensors(squares, v, numbers.skip)

    @staticmethod
    def fused(tensors: StepTensors, numbers: StepScalars, settings: GroupSettings) -> None:
        """Change the weights and moments by one optimiser step, with PyTorch's fused AdamW kernel.

        The kernel has one learning rate for all weights, but this optimiser has a rate for each weight. So
        the kernel is applied to zeros with a rate of -1, which gives m / (sqrt(v) + eps). Each weight's rate
        is then applied to this result.
        """
        rate, skip = numbers.rate, numbers.skip
        assert isinstance(rate, Tensor)
        if numbers.divisor is not None:
            torch._foreach_mul_(tensors.gradients, 1 / numbers.divisor)
        sizes = [weight.numel() for weight in tensors.weights]
        flat = torch.zeros(sum(sizes), device=rate.device)
        parts = zip(torch.split(flat, sizes), tensors.weights, strict=True)
        u = [part.view_as(weight) for part, weight in parts]
        run_fused_adamw(
            u, tensors, numbers._replace(divisor=None), settings, torch.full_like(rate, -1.0), 0.0
        )
        roots = torch._foreach_sqrt(tensors.moments[1])
        torch._foreach_mul_(roots, 1 / compute_bias_corrections(numbers.applied, settings)[1])
        rates = compute_stable_rates(rate, tensors, tensors.gradients, list(roots), settings)
        if skip is not None:
            rates = torch.where(skip > 0, 0.0, rates)  # a rate of 0 leaves the weights unchanged
        for weight, change, factor in zip(tensors.weights, u, rates.unbind(), strict=True):
            if settings.weight_decay:
                weight.mul_(1 - factor * settings.weight_decay)
            weight.addcmul_(change, -factor)


def compute_stable_rates(
    rate: Tensor | float,
    tensors: StepTensors,
    gradients: list[Tensor],
    roots: list[Tensor],
    settings: GroupSettings,
) -> Tensor:
    """Return the learning rate of each weight, with shape (n,).

    rate: the configured learning rate, before it is reduced for each weight.
    roots: for each weight the square roots of the corrected averages of squares. They are overwritten.
    """
    torch._foreach_clamp_min_(roots, settings.eps)
    surprises = torch._foreach_div(gradients, roots)
    sizes = [settings.norms.count_elements(weight) for weight in tensors.weights]
    torch._foreach_mul_(surprises, [max(1, size) ** -0.5 for size in sizes])
    return rate / settings.norms.compute_each(list(surprises)).clamp(min=1.0)


def compute_bias_corrections(
    count: Tensor | float, settings: GroupSettings
) -> tuple[Tensor | float, Tensor | float]:
    """Return Adam's two bias corrections: 1 - beta1 ** count, and the square root of 1 - beta2 ** count.

    They are computed with ``expm1``, because 1 - beta ** count is inexact for small counts.
    count: number of steps, including this one.
    """
    if not settings.debias:
        return 1.0, 1.0
    log1, log2 = (math.log(beta) if beta else -math.inf for beta in settings.betas)
    if isinstance(count, Tensor):
        return -torch.expm1(count * log1), torch.sqrt(-torch.expm1(count * log2))
    return -math.expm1(count * log1), math.sqrt(-math.expm1(count * log2))


def overwrite_tensors(old: list[Tensor], new: Iterable[Tensor], skip: Tensor | None) -> None:
    """Copy the new values over the old ones, unless the step is skipped."""
    for before, after in zip(old, new, strict=True):
        before.copy_(after if skip is None else torch.where(skip > 0, before, after))


def divide_gradients(gradients: list[Tensor], divisor: Tensor | None) -> list[Tensor]:
    """Return the gradients divided by a 0-dim tensor, or unchanged if the divisor is None."""
    return gradients if divisor is None else list(torch._foreach_mul(gradients, 1 / divisor))


# The names that users type are in trainer.plugins. Each of them has a preset, whose ``kind`` is a key here.
OPTIMISERS: dict[str, type[Optimiser]] = {
    "lamb": Lamb,
    "adamw": Lamb,  # PyTorch's AdamW: no group has trust ratios
    "sgd": Sgd,
    "stableadamw": StableAdamW,
}
"""Class of the optimiser for each ``Preset.kind``."""


def build_optimiser(preset: Preset, groups: list[dict[str, Any]]) -> Optimiser:
    """Return the preset's optimiser for these parameter groups."""
    return OPTIMISERS[preset.kind](groups, preset)
