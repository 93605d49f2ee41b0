"""Functions for the parameter groups of both optimisers.

This module is not part of the vendor's interface.
"""

from typing import Any

from recording import record


def spelt_groups(groups: list[dict[str, Any]]) -> str:
    """Return a text with the number of parameters in each group, and the group's settings."""
    parts = [
        f"{len(group['params'])} with " + ", ".join(f"{key}={group[key]}" for key in ("weight_decay", "step"))
        for group in groups
    ]
    return "[" + "; ".join(parts) + "]"


def refuse_empty(name: str, groups: list[dict[str, Any]]) -> None:
    """Raise an error for an empty group.

    The original crashes, since it looks at each group's first parameter.
    """
    for number, group in enumerate(groups):
        if not group["params"]:
            raise RuntimeError(f"{name}: parameter group {number} is empty")


def record_step(name: str, groups: list[dict[str, Any]]) -> None:
    for group in groups:
        group["step"] = group.get("step", 0) + 1
    record(f"{name}.step() number {groups[0]['step']} at lr {groups[0]['lr']:.6g}")


def average(state: dict[str, Any], weight: Any, beta1: float, beta2: float, gradient: Any) -> None:
    """Update the running averages of the gradient and of its square."""
    for kind in ("exp_avg", "exp_avg_sq"):
        if kind not in state:
            state[kind] = weight.detach().new_zeros(weight.shape)
    state["exp_avg"].mul_(beta1).add_(gradient, alpha=1 - beta1)
    state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
