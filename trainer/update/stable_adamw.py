"""StableAdamW (Wortsman et al. 2023): AdamW with a lower rate where a gradient is a surprise."""

from typing import Any

import torch
from torch import Tensor

from trainer.update.lamb import fused_adamw
from trainer.update.optimiser import GroupSettings, Numbers, Optimiser, Tensors
from trainer.update.plain_steps import corrections, divided, overwrite


class StableAdamW(Optimiser):
    """Per tensor w, with bias-corrected averages m of the gradient g and v of its square:

        r = rate / max(1, root mean square of g / max(sqrt(v), eps))
        w = w * (1 - r * weight_decay) - r * m / (sqrt(v) + eps)

    With a preset that decays_by_share, r times the decay is divided by the preset's rate. The moments are
    AdamW's, fp32. torch-optimi, and ModernBERT's program after it, keep corrected averages: the same numbers
    but for rounding.
    """

    moments = "exp_avg", "exp_avg_sq"

    def settings(self, group: dict[str, Any]) -> GroupSettings:
        """The group's settings, with the decay of a rate of 1."""
        given = super().settings(group)
        peak = self.preset.lr if self.preset.decays_by_share else 1.0
        return given._replace(weight_decay=given.weight_decay / peak)

    @staticmethod
    def fused(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
        """A step by PyTorch's fused AdamW, which changes zeros by a rate of -1: m / (sqrt(v) + eps)."""
        rate, skip = numbers.rate, numbers.skip
        assert isinstance(rate, Tensor)
        if numbers.divisor is not None:
            torch._foreach_mul_(tensors.gradients, 1 / numbers.divisor)
        sizes = [weight.numel() for weight in tensors.weights]
        flat = torch.zeros(sum(sizes), device=rate.device)
        parts = zip(torch.split(flat, sizes), tensors.weights, strict=True)
        u = [part.view_as(weight) for part, weight in parts]
        fused_adamw(u, tensors, numbers._replace(divisor=None), settings, torch.full_like(rate, -1.0), 0.0)
        roots = torch._foreach_sqrt(tensors.moments[1])
        torch._foreach_mul_(roots, 1 / corrections(numbers.applied, settings)[1])
        rates = stable_rates(rate, tensors, tensors.gradients, list(roots), settings)
        if skip is not None:
            rates = torch.where(skip > 0, 0.0, rates)  # leaves every bit of a weight
        for weight, change, factor in zip(tensors.weights, u, rates.unbind(), strict=True):
            if settings.weight_decay:
                weight.mul_(1 - factor * settings.weight_decay)
            weight.addcmul_(change, -factor)


def step_of_stable_adamw(tensors: Tensors, numbers: Numbers, settings: GroupSettings) -> None:
    """The step of ``StableAdamW`` in plain operations."""
    (beta1, beta2), (means, squares) = settings.betas, tensors.moments
    correction, root = corrections(numbers.applied, settings)
    g = divided(tensors.gradients, numbers.divisor)
    m = torch._foreach_lerp(means, g, 1 - beta1)
    v = torch._foreach_addcmul(torch._foreach_mul(squares, beta2), g, g, 1 - beta2)
    roots = list(torch._foreach_mul(torch._foreach_sqrt(v), 1 / root))
    u = torch._foreach_div(torch._foreach_mul(m, 1 / correction), torch._foreach_add(roots, settings.eps))
    rates = list(stable_rates(numbers.rate, tensors, g, roots, settings).unbind())
    changed = list(torch._foreach_mul(u, rates))
    if settings.weight_decay:
        decays = torch._foreach_mul(tensors.weights, torch._foreach_mul(rates, settings.weight_decay))
        changed = list(torch._foreach_add(changed, decays))
    overwrite(tensors.weights, torch._foreach_sub(tensors.weights, changed), numbers.skip)
    overwrite(means, m, numbers.skip)
    overwrite(squares, v, numbers.skip)


def stable_rates(
    rate: Tensor | float,
    tensors: Tensors,
    gradients: list[Tensor],
    roots: list[Tensor],
    settings: GroupSettings,
) -> Tensor:
    """(n,): the rate of each weight. roots: of the corrected averages of squares, changed here."""
    torch._foreach_clamp_min_(roots, settings.eps)
    surprises = torch._foreach_div(gradients, roots)
    sizes = [settings.norms.size(weight) for weight in tensors.weights]
    torch._foreach_mul_(surprises, [max(1, size) ** -0.5 for size in sizes])
    return rate / settings.norms.each(list(surprises)).clamp(min=1.0)
