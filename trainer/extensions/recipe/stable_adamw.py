"""StableAdamW (Wortsman et al. 2023): AdamW with a lower rate where a gradient is a surprise."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.update.lamb import fused_adamw
from trainer.update.optimiser import LOCAL_NORMS, Norms, Numbers, Optimiser, Tensors
from trainer.update.plain_steps import corrections, divided, overwrite

_DEFAULTS = {
    "lr": 1e-3,
    "betas": (0.9, 0.99),
    "eps": 1e-6,
    "weight_decay": 0.01,
    "decays_by_share": False,
    "trust": False,
}


class StableSettings(NamedTuple):
    """Settings of a parameter group. peak: the rate whose share the decay follows; None: the rate itself."""

    betas: tuple[float, float]
    eps: float
    weight_decay: float
    peak: float | None = None
    debias: bool = True
    norms: Norms = LOCAL_NORMS

    @property
    def decay(self) -> float:
        """The weight decay of a rate of 1."""
        return self.weight_decay / (self.peak or 1.0)


class StableAdamW(Optimiser):
    """Per tensor w, with bias-corrected averages m of the gradient g and v of its square:

        r = rate / max(1, root mean square of g / max(sqrt(v), eps))
        w = w * (1 - r * weight_decay) - r * m / (sqrt(v) + eps)

    With decays_by_share the decay is that of r / (the rate that the optimiser is made with). The moments are
    AdamW's, fp32. torch-optimi, and ModernBERT's program after it, keep corrected averages: the same numbers
    but for rounding.
    """

    kind = "stableadamw"
    usual = _DEFAULTS

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, **settings)
        for group in self.param_groups:
            group.setdefault("peak", group["lr"] if group["decays_by_share"] else None)

    def settings(self, group: dict[str, Any]) -> StableSettings:
        names = ("betas", "eps", "weight_decay", "peak")
        return StableSettings(**{name: group[name] for name in names}, norms=self.norms)

    def moments_of(self, settings: StableSettings) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    @staticmethod
    def fused(tensors: Tensors, numbers: Numbers, settings: StableSettings) -> None:
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
        torch._foreach_mul_(roots, 1 / corrections(numbers.applied, settings.betas)[1])
        rates = stable_rates(rate, tensors, tensors.gradients, list(roots), settings)
        if skip is not None:
            rates = torch.where(skip > 0, 0.0, rates)  # leaves every bit of a weight
        for weight, change, factor in zip(tensors.weights, u, rates.unbind(), strict=True):
            if settings.weight_decay:
                weight.mul_(1 - factor * settings.decay)
            weight.addcmul_(change, -factor)


def step_of_stable_adamw(tensors: Tensors, numbers: Numbers, settings: StableSettings) -> None:
    """The step of ``StableAdamW`` in plain operations."""
    (beta1, beta2), (means, squares) = settings.betas, tensors.moments
    correction, root = corrections(numbers.applied, settings.betas)
    g = divided(tensors.gradients, numbers.divisor)
    m = torch._foreach_lerp(means, g, 1 - beta1)
    v = torch._foreach_addcmul(torch._foreach_mul(squares, beta2), g, g, 1 - beta2)
    roots = list(torch._foreach_mul(torch._foreach_sqrt(v), 1 / root))
    u = torch._foreach_div(torch._foreach_mul(m, 1 / correction), torch._foreach_add(roots, settings.eps))
    rates = list(stable_rates(numbers.rate, tensors, g, roots, settings).unbind())
    changed = list(torch._foreach_mul(u, rates))
    if settings.weight_decay:
        decays = torch._foreach_mul(tensors.weights, torch._foreach_mul(rates, settings.decay))
        changed = list(torch._foreach_add(changed, decays))
    overwrite(tensors.weights, torch._foreach_sub(tensors.weights, changed), numbers.skip)
    overwrite(means, m, numbers.skip)
    overwrite(squares, v, numbers.skip)


def stable_rates(
    rate: Tensor | float,
    tensors: Tensors,
    gradients: list[Tensor],
    roots: list[Tensor],
    settings: StableSettings,
) -> Tensor:
    """(n,): the rate of each weight. roots: of the corrected averages of squares, changed here."""
    torch._foreach_clamp_min_(roots, settings.eps)
    surprises = torch._foreach_div(gradients, roots)
    sizes = [settings.norms.size(weight) for weight in tensors.weights]
    torch._foreach_mul_(surprises, [max(1, size) ** -0.5 for size in sizes])
    return rate / settings.norms.each(list(surprises)).clamp(min=1.0)
