"""LAMB as NVIDIA has it: gradients over max(1, norm / max_grad_norm), trust ratios with weight decay only."""

from typing import Any

import torch
from recording import record

from habana_frameworks.torch.hpex.optimizers.groups import average, record_step, refuse_empty, spelt_groups


class FusedLamb(torch.optim.Optimizer):
    """Stand-in for Habana's LAMB.

    A weight of norm 0 has the trust ratio 0, as in the original.

    use_lamb: apply the trust ratio also to parameters without weight decay.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        adam_w_mode: bool = True,
        grad_averaging: bool = True,
        set_grad_none: bool = True,
        max_grad_norm: float | None = 1.0,
        use_lamb: bool = False,
        fused: bool = False,
        dtype: torch.dtype | None = None,
    ) -> None:
        if amsgrad or not adam_w_mode or not grad_averaging or not set_grad_none or fused or dtype:
            raise RuntimeError("FusedLamb: an option that this stand-in does not know")
        self.use_lamb = use_lamb
        settings = {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "max_grad_norm": max_grad_norm})
        refuse_empty("FusedLamb", self.param_groups)
        shown = {**settings, "max_grad_norm": max_grad_norm, "use_lamb": use_lamb}
        options = ", ".join(f"{key}={value}" for key, value in shown.items())
        record(f"FusedLamb({spelt_groups(self.param_groups)}, {options})")

    def zero_grad(self) -> None:  # takes no argument, unlike PyTorch's
        record("FusedLamb.zero_grad()")
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        record_step("FusedLamb", self.param_groups)
        squares = [w.grad.double().square().sum() for group in self.param_groups for w in group["params"]]
        norm, most = float(torch.stack(squares).sum().sqrt()), self.defaults["max_grad_norm"]
        divisor = norm / most if most is not None and norm > most else 1.0
        for group in self.param_groups:
            for weight in group["params"]:
                self._change(weight, weight.grad / divisor, group)

    def _change(self, weight: Any, gradient: Any, group: dict[str, Any]) -> None:
        (beta1, beta2), decay, state = group["betas"], group["weight_decay"], self.state[weight]
        average(state, weight, beta1, beta2, gradient)
        first = second = 1.0
        if group["bias_correction"]:
            first, second = 1 - beta1 ** group["step"], 1 - beta2 ** group["step"]
        change = state["exp_avg"] / first / ((state["exp_avg_sq"] / second).sqrt() + group["eps"])
        if decay:
            change = change + decay * weight
        ratio = 1.0
        if (decay or self.use_lamb) and change.norm() > 0:
            ratio = float(weight.norm() / change.norm())
        weight.sub_(change, alpha=group["lr"] * ratio)
