"""Optimisers by name: what each program decays, trusts, corrects and clips."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import torch
from torch import nn

from bertdata.errors import SettingsError
from trainer.optim.lamb import Lamb

_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
_NVIDIA = ("bias", "gamma", "beta", "LayerNorm")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Settings of an optimiser; a name is skipped when one of the given parts occurs in it.

    trust: which parameters have a trust ratio: "all", "none", those that weight decay's names do not
    skip ("named"), or those whose decay is not 0 ("decayed").
    clip_norm, clip_each: gradients are clipped to this global norm, if any, in each micro-batch on its
    worker or once an update, after the all-reduce. The caller clips: ``clip_``.
    """

    kind: str = "lamb"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    decay_skips: tuple[str, ...] = ()
    trust: str = "all"
    debias: bool = True
    momentum: float = 0.0
    clip_norm: float | None = None
    clip_each: bool = False

    def __post_init__(self) -> None:
        _check(0 <= self.betas[0] < 1 and 0 <= self.betas[1] < 1, f"betas are {self.betas}, expected below 1")
        _check(self.eps > 0, f"eps is {self.eps}, expected more than 0")
        _check(self.weight_decay >= 0, f"weight_decay is {self.weight_decay}, expected 0 or more")
        _check(0 <= self.momentum < 1, f"momentum is {self.momentum}, expected 0 to below 1")
        _check(
            self.trust in ("all", "named", "decayed", "none"),
            f"trust is {self.trust!r}, expected all, named, decayed or none",
        )

    def decays(self, name: str) -> bool:
        return not any(part in name for part in self.decay_skips)

    def trusts(self, name: str) -> bool:
        if self.trust == "named":
            return self.decays(name)
        if self.trust == "decayed":
            return self.decays(name) and self.weight_decay != 0
        return self.trust == "all"


PRESETS = {
    "lamb-mlperf": Preset(decay_skips=_TENSORFLOW, trust="named", clip_norm=1.0, clip_each=True),
    "lamb-nvidia": Preset(decay_skips=_NVIDIA, trust="decayed", clip_norm=1.0),
    "lamb-nvlamb": Preset(decay_skips=_NVIDIA, clip_norm=1.0),
    "lamb-habana-tf": Preset(decay_skips=_TENSORFLOW, clip_norm=1.0, clip_each=True),
    "lamb-graphcore": Preset(debias=False),
    "adamw-bert": Preset(decay_skips=_TENSORFLOW, trust="none", debias=False, clip_norm=1.0),
    # The rest is as PyTorch has it.
    "adamw": Preset(kind="adamw", eps=1e-8, trust="none"),
    "momentum": Preset(kind="sgd", weight_decay=0.0, momentum=0.9, trust="none"),
    "sgd": Preset(kind="sgd", weight_decay=0.0, trust="none"),
}


def find_preset(name: str, **settings: Any) -> Preset:
    """The preset of that name with some of its settings changed."""
    if name not in PRESETS:
        raise SettingsError(f"optimiser {name!r}: not known, {_nearest(name, PRESETS)}")
    known = [item.name for item in fields(Preset) if item.name != "kind"]
    for key in settings:
        if key not in known:
            raise SettingsError(f"optimiser {name}: unknown setting {key!r}, {_nearest(key, known)}")
    try:
        return replace(PRESETS[name], **settings)
    except SettingsError as error:
        raise SettingsError(f"optimiser {name}: {error}") from None


def make_optimiser(
    name: str, named_parameters: Iterable[tuple[str, nn.Parameter]], **settings: Any
) -> torch.optim.Optimizer:
    """An optimiser with a group for each mix of decay and trust; the caller sets lr and clips."""
    preset = find_preset(name, **settings)
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for path, parameter in named_parameters:
        if parameter.requires_grad:
            groups.setdefault((preset.decays(path), preset.trusts(path)), []).append(parameter)
    made = [
        {"params": parameters, "weight_decay": preset.weight_decay if decays else 0.0, "trust": trusts}
        for (decays, trusts), parameters in groups.items()
    ]
    if preset.kind == "lamb":
        return Lamb(made, lr=preset.lr, betas=preset.betas, eps=preset.eps, debias=preset.debias)
    for group in made:
        del group["trust"]
    if preset.kind == "adamw":
        return torch.optim.AdamW(made, lr=preset.lr, betas=preset.betas, eps=preset.eps, foreach=True)
    return torch.optim.SGD(made, lr=preset.lr, momentum=preset.momentum, foreach=True)


def _nearest(name: str, known: Iterable[str]) -> str:
    return f"did you mean {get_close_matches(name, list(known), n=1, cutoff=0)[0]}?"
