"""Optimisers by name, made of their presets in the configuration."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from trainer.config.update import Preset, find_preset
from trainer.optim.optimiser import Optimiser
from trainer.registry import find

_SETTINGS = {"lamb": ("betas", "eps", "debias"), "adamw": ("betas", "eps"), "sgd": ("momentum",)}
"""The fields of a preset that its kind of optimiser takes."""


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
    settings = {name: getattr(preset, name) for name in _SETTINGS[preset.kind]}
    optimiser: Optimiser = find("optimiser", preset.kind)(groups, lr=preset.lr, **settings)
    return optimiser
