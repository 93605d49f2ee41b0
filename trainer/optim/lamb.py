"""LAMB (You et al. 2020); without trust ratios it is the Adam of the original BERT."""

import math
from collections.abc import Callable, Iterable
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor

from bertdata.config.value_check import check_names

# Small enough for a processor's cache, large enough to keep a GPU busy.
_CHUNK = 2**22
_DEFAULTS = {
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-6,
    "weight_decay": 0.01,
    "debias": True,
    "trust": True,
}
_AVERAGES = ("exp_avg", "exp_avg_sq")  # PyTorch's names for them


class Lamb(torch.optim.Optimizer):
    """Per tensor w, with bias-corrected averages m of the gradient and v of its square (if debias):

        u = m / (sqrt(v) + eps) + weight_decay * w
        w = w - lr * trust * u,  trust = |w| / |u|, 1 if either norm is 0 or the group has none

    Parameter groups may set weight_decay and trust. Separate query, key and value parameters have a
    ratio each, as Graphcore gives one to each part of a fused parameter. The state is fp32; state_dict
    holds tensors and plain numbers only.

    A group's ``step`` counts the updates applied, from 1 at the first, which avoids a division by zero;
    an update skipped because of an overflow does not count. chunk: the approximate number of elements
    updated at a time, which bounds temporary memory.
    """

    def __init__(self, params: Iterable[Any], *, chunk: int = _CHUNK, **settings: Any) -> None:
        self.chunk = chunk
        check_names(settings, _DEFAULTS, "lamb: ")
        super().__init__(params, {**_DEFAULTS, **settings, "step": 0})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update each parameter that has a gradient."""
        with torch.enable_grad():
            result = closure() if closure else None
        for group in self.param_groups:
            group["step"] += 1
            used = [weight for weight in group["params"] if weight.grad is not None]
            ends = accumulate(weight.numel() for weight in used)
            for _, chunk in groupby(zip(used, ends, strict=True), lambda item: item[1] // self.chunk):
                weights = [weight for weight, _ in chunk]
                states = [self._state_of(weight) for weight in weights]
                gradients = [weight.grad for weight in weights]
                means, squares = ([state[name] for state in states] for name in _AVERAGES)
                update(weights, gradients, means, squares, group)
        return result

    def _state_of(self, weight: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[weight]
        for name in _AVERAGES:
            if name not in state:
                state[name] = torch.zeros_like(weight, dtype=torch.float32)
        return state


def update(w: list[Tensor], g: list[Tensor], m: list[Tensor], v: list[Tensor], group: dict[str, Any]) -> None:
    """One step, in place, on weights w, gradients g and averages m, v of one group."""
    (beta1, beta2), eps, decay, lr = group["betas"], group["eps"], group["weight_decay"], group["lr"]
    torch._foreach_lerp_(m, g, 1 - beta1)
    torch._foreach_mul_(v, beta2)
    torch._foreach_addcmul_(v, g, g, 1 - beta2)
    # (m / c1) / (sqrt(v / c2) + eps) = m / (sqrt(v) + eps * sqrt(c2)) * sqrt(c2) / c1
    scale = 1.0
    if group["debias"]:
        root = math.sqrt(1 - beta2 ** group["step"])
        scale = root / (1 - beta1 ** group["step"])
        eps = eps * root
    # u / scale, in the only temporary
    u = torch._foreach_sqrt(v)
    torch._foreach_add_(u, eps)
    torch._foreach_reciprocal_(u)
    torch._foreach_mul_(u, m)
    if decay:
        torch._foreach_add_(u, w, alpha=decay / scale)
    if not group["trust"]:
        torch._foreach_add_(w, u, alpha=-lr * scale)
        return
    w_norms = torch.stack(torch._foreach_norm(w))
    u_norms = torch.stack(torch._foreach_norm(u)) * scale
    ratios = torch.where((w_norms > 0) & (u_norms > 0), w_norms / u_norms, 1.0)
    torch._foreach_addcmul_(w, u, (ratios * (-lr * scale)).unbind())
