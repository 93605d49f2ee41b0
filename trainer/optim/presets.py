"""Optimisers by name, made of their presets in the configuration."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from trainer.config.optimisers import Preset, find_preset
from trainer.optim.lamb import Lamb
from trainer.optim.optimiser import Optimiser
from trainer.optim.sgd import Sgd

_KINDS: dict[str, tuple[Callable[..., Optimiser], tuple[str, ...]]] = {
    "lamb": (Lamb, ("betas", "eps", "debias")),
    "adamw": (Lamb, ("betas", "eps")),  # PyTorch's AdamW: no group has trust ratios
    "sgd": (Sgd, ("momentum",)),
}


def make_optimiser(
    name: str, named_parameters: Iterable[tuple[str, nn.Parameter]], **settings: Any
) -> Optimiser:
    """The optimiser of that name with the given settings changed; the caller sets lr and clips."""
    preset = find_preset(name, **settings)
    return build_optimiser(preset, group_parameters(preset, named_parameters))


def group_parameters(
    preset: Preset, named_parameters: Iterable[tuple[str, nn.Parameter]]
) -> list[dict[str, Any]]:
    """Parameter groups, one for each combination of decay and trust: params, weight_decay, trust."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for path, parameter in named_parameters:
        if parameter.requires_grad:
            groups.setdefault((preset.decays(path), preset.trusts(path)), []).append(parameter)
    return [
        {"params": parameters, "weight_decay": preset.weight_decay if decays else 0.0, "trust": trusts}
        for (decays, trusts), parameters in groups.items()
    ]


def build_optimiser(preset: Preset, groups: list[dict[str, Any]]) -> Optimiser:
    """The preset's optimiser over the groups."""
    make, names = _KINDS[preset.kind]
    return make(groups, lr=preset.lr, **{name: getattr(preset, name) for name in names})
