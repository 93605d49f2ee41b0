"""AdamW as in Hugging Face's old version: epsilon is added before the bias correction."""

import math
from typing import Any

import torch
from recording import record

from habana_frameworks.torch.hpex.optimizers.groups import average, record_step, refuse_empty, spelt_groups


class FusedAdamW(torch.optim.Optimizer):
    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
        moments_dtype: Any = None,
    ) -> None:
        if moments_dtype:
            raise RuntimeError("FusedAdamW: moments_dtype is not known to this stand-in")
        settings = {"lr": lr, "betas": betas, "eps": eps, "bias_correction": bias_correction}
        super().__init__(params, {**settings, "weight_decay": weight_decay})
        refuse_empty("FusedAdamW", self.param_groups)
        options = ", ".join(f"{key}={value}" for key, value in settings.items())
        record(f"FusedAdamW({spelt_groups(self.param_groups)}, {options})")

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        record_step("FusedAdamW", self.param_groups)
        for group in self.param_groups:
            (beta1, beta2), lr = group["betas"], group["lr"]
            size = lr
            if group["bias_correction"]:
                size *= math.sqrt(1 - beta2 ** group["step"]) / (1 - beta1 ** group["step"])
            for weight in group["params"]:
                state = self.state[weight]
                average(state, weight, beta1, beta2, weight.grad)
                weight.mul_(1 - lr * group["weight_decay"])
                weight.addcdiv_(state["exp_avg"], state["exp_avg_sq"].sqrt() + group["eps"], value=-size)
