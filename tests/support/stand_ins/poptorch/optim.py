"""PopTorch's optimisers: the documented constructors, and their formulas on the device's tensors."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from recording import call
from torch import Tensor

State = dict[str, Tensor]


class VariableAttributes:
    def __init__(self, allowed: set[str]) -> None:
        self._allowed = allowed

    def markAsConstant(self, attr: str) -> None:
        call("variable_attrs.markAsConstant", attr)
        assert attr in self._allowed, f"Unknown attribute {attr}, allowed values: {self._allowed}"


class Optimizer(torch.optim.Optimizer, ABC):
    """Base class of the optimisers.

    executor: the executor that holds the optimiser's state, once there is one.
    """

    names: tuple[str, ...]  # of what is kept for each weight, as PopART calls it
    group_keys: tuple[str, ...]

    def _begin(self, params: Any, defaults: dict[str, Any], **settings: Any) -> None:
        given = {name: value for name, value in {**defaults, **settings}.items() if value is not None}
        groups = [{**group, "params": len(group["params"])} for group in params]
        call(f"optim.{type(self).__name__}", groups, **given)
        for group in params:
            if foreign := set(group) - {"params", *self.group_keys}:
                raise ValueError(f"Ignoring unexpected group attribute in {type(self).__name__}: {foreign}")
        super().__init__(params, defaults)
        self.loss_scaling = 1.0 if settings["loss_scaling"] is None else settings["loss_scaling"]
        for name in [name for name in settings if name.endswith("accum_type")]:
            settings[name] = settings[name] or torch.float32
            assert settings[name] in (torch.float16, torch.float32), "Accumulation types must be either ..."
        self.settings = settings
        self.variable_attrs = VariableAttributes({*defaults, "loss_scaling"})
        self.executor: Any = None
        self.host: dict[str, Any] = {"ipu_state": None, "ipu_param": None}
        self.ipu_state_is_dirty = self.host_state_is_dirty = False

    @property
    def accum_type(self) -> torch.dtype:
        return self.settings["accum_type"]

    def state_dict(self) -> dict[str, Any]:
        if self.host_state_is_dirty:
            call("optimizer.state_dict")
            self.host = {"ipu_state": self.executor.read_state(), "ipu_param": {}}
            self.host_state_is_dirty = False
        return {**self.host, **super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not ("ipu_state" in state and "ipu_param" in state):
            raise RuntimeError("Only IPU optimizer states can be loaded onto the IPU.")
        call("optimizer.load_state_dict", sorted(state))
        super().load_state_dict({name: state[name] for name in ("state", "param_groups")})
        self.host = {name: state[name] for name in ("ipu_state", "ipu_param")}
        self.ipu_state_is_dirty, self.host_state_is_dirty = True, False

    @abstractmethod
    def fresh(self, weight: Tensor) -> State:
        """The state of a weight that was never changed."""

    @abstractmethod
    def change(self, group: dict[str, Any], weight: Tensor, gradient: Tensor, state: State) -> Tensor:
        """The change to add to the weight."""

    def clip(self, gradients: list[Tensor]) -> list[Tensor]:
        limit = self.settings.get("max_grad_norm") or math.inf
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
        return [gradient * min(1.0, limit / float(norm)) for gradient in gradients]


def _moments(group: dict[str, Any], gradient: Tensor, state: State, corrected: bool) -> Tensor:
    """Return the first moment divided by the root of the second.

    corrected: correct both for their start at zero.
    """
    beta1, beta2 = group["betas"]
    state["Accl1"] = (beta1 * state["Accl1"].float() + (1 - beta1) * gradient).to(state["Accl1"].dtype)
    state["Accl2"] = (beta2 * state["Accl2"].float() + (1 - beta2) * gradient**2).to(state["Accl2"].dtype)
    mean, square = state["Accl1"].float(), state["Accl2"].float()
    if corrected:
        state["Step"] = state["Step"] + 1
        step = float(state["Step"])
        mean, square = mean / (1 - beta1**step), square / (1 - beta2**step)
    return mean / (square.sqrt() + group["eps"])


class _Adaptive(Optimizer):
    def fresh(self, weight: Tensor) -> State:
        """Return the state of a weight before its first update."""
        state = {
            "Accl1": torch.zeros_like(weight, dtype=self.settings["first_order_momentum_accum_type"]),
            "Accl2": torch.zeros_like(weight, dtype=self.settings["second_order_momentum_accum_type"]),
        }
        return {**state, "Step": torch.zeros(1)} if self.settings["bias_correction"] else state


class LAMB(_Adaptive):
    group_keys = ("lr", "weight_decay", "betas", "eps", "max_weight_norm")

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        bias_correction: bool | None = None,
        loss_scaling: float | None = None,
        max_weight_norm: float | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
    ) -> None:
        defaults = {
            "lr": 1e-3 if lr is None else lr,
            "betas": betas or (0.9, 0.999),
            "eps": 1e-8 if eps is None else eps,
            "weight_decay": 1e-2 if weight_decay is None else weight_decay,
            "max_weight_norm": 65500.0 if max_weight_norm is None else max_weight_norm,
        }
        self._begin(
            params,
            defaults,
            bias_correction=True if bias_correction is None else bias_correction,
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
        )

    def change(self, group: dict[str, Any], weight: Tensor, gradient: Tensor, state: State) -> Tensor:
        update = _moments(group, gradient, state, self.settings["bias_correction"])
        update = update + group["weight_decay"] * weight
        norm, size = min(float(weight.norm()), group["max_weight_norm"]), float(update.norm())
        trust = norm / size if norm and size else 1.0
        return -group["lr"] * trust * update


class AdamW(_Adaptive):
    group_keys = ("lr", "betas", "weight_decay", "eps", "amsgrad")

    def __init__(
        self,
        params: Any,
        lr: float | None = None,
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float | None = None,
        amsgrad: bool | None = None,
        loss_scaling: float | None = None,
        bias_correction: bool | None = None,
        accum_type: torch.dtype | None = None,
        first_order_momentum_accum_type: torch.dtype | None = None,
        second_order_momentum_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        assert not amsgrad, "Only non-amsgrad Adam/AdamW optimizers are supported."
        defaults = {
            "lr": 1e-3 if lr is None else lr,
            "betas": betas or (0.9, 0.999),
            "eps": 1e-8 if eps is None else eps,
            "weight_decay": 1e-2 if weight_decay is None else weight_decay,
        }
        self._begin(
            params,
            defaults,
            bias_correction=True if bias_correction is None else bias_correction,
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            first_order_momentum_accum_type=first_order_momentum_accum_type,
            second_order_momentum_accum_type=second_order_momentum_accum_type,
            max_grad_norm=max_grad_norm,
        )

    def change(self, group: dict[str, Any], weight: Tensor, gradient: Tensor, state: State) -> Tensor:
        update = _moments(group, gradient, state, self.settings["bias_correction"])
        return -group["lr"] * (update + group["weight_decay"] * weight)


class SGD(Optimizer):
    """SGD with separate tensors for velocities, which is PopTorch's default."""

    group_keys = ("lr", "momentum", "dampening", "weight_decay", "nesterov")

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float | None = None,
        dampening: float | None = None,
        weight_decay: float | None = None,
        nesterov: bool | None = None,
        loss_scaling: float | None = None,
        use_combined_accum: bool | None = None,
        accum_type: torch.dtype | None = None,
        velocity_accum_type: torch.dtype | None = None,
        max_grad_norm: float | None = None,
    ) -> None:
        assert not any((dampening, nesterov, use_combined_accum)), "the stand-in knows none of these"
        defaults = {"lr": lr, "momentum": momentum or 0.0, "weight_decay": weight_decay or 0.0}
        self._begin(
            params,
            defaults,
            loss_scaling=loss_scaling,
            accum_type=accum_type,
            velocity_accum_type=velocity_accum_type,
            max_grad_norm=max_grad_norm,
        )

    def fresh(self, weight: Tensor) -> State:
        if not self.defaults["momentum"]:
            return {}
        return {"Accl1": torch.zeros_like(weight, dtype=self.settings["velocity_accum_type"])}

    def change(self, group: dict[str, Any], weight: Tensor, gradient: Tensor, state: State) -> Tensor:
        velocity = gradient + group["weight_decay"] * weight
        if state:
            velocity = group["momentum"] * state["Accl1"].float() + velocity
            state["Accl1"] = velocity.to(state["Accl1"].dtype)
        return -group["lr"] * velocity
