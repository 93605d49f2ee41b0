"""Optimisers by name: each program's constants, weight decay, trust ratios and bias correction."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bertdata.config.value_check import check_names, check_values

_TENSORFLOW = ("LayerNorm", "layer_norm", "bias")
_NVIDIA = ("bias", "gamma", "beta", "LayerNorm")
_SHARE = {"minimum": 0, "exclusiveMaximum": 1}
_RANGES = {
    "beta1": _SHARE,
    "beta2": _SHARE,
    "eps": {"exclusiveMinimum": 0},
    "weight_decay": {"minimum": 0},
    "momentum": _SHARE,
    "trust": {"enum": ["all", "named", "decayed", "weights", "none"]},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Settings of an optimiser.

    decay_skips: parameters whose name contains one of these do not decay.
    trust: the parameters with a trust ratio: "all", "none", those that decay_skips does not match
    ("named"), those whose decay is not 0 ("decayed"), or all but biases ("weights").

    schedule, clipping: what the optimiser's authors use with it, where a configuration names none.
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
    schedule: str = "polynomial_decay"
    clipping: str = "none"

    def decays(self, name: str) -> bool:
        return not any(part in name for part in self.decay_skips)

    def trusts(self, name: str) -> bool:
        if self.trust in ("all", "none"):
            return self.trust == "all"
        if self.trust == "weights":
            return "bias" not in name
        return self.decays(name) and (self.trust == "named" or self.weight_decay != 0)


PRESETS = {
    "lamb-mlperf": Preset(
        decay_skips=_TENSORFLOW, trust="named", schedule="mlperf", clipping="per_micro_batch"
    ),
    "lamb-nvidia": Preset(
        decay_skips=_NVIDIA, trust="decayed", schedule="nvidia-poly", clipping="per_update"
    ),
    "lamb-nvlamb": Preset(decay_skips=_NVIDIA, schedule="nvidia-poly", clipping="per_update"),
    "lamb-habana-tf": Preset(
        decay_skips=_TENSORFLOW, schedule="habana-tf", clipping="per_micro_batch_divided"
    ),
    "lamb-graphcore": Preset(debias=False),
    "lamb-graphcore-pytorch": Preset(decay_skips=("bias", "LayerNorm"), trust="weights"),
    "adamw-bert": Preset(
        decay_skips=_TENSORFLOW, trust="none", debias=False, schedule="mlperf", clipping="per_micro_batch"
    ),
    # PyTorch's defaults in all else.
    "adamw": Preset(kind="adamw", eps=1e-8, trust="none"),
    "momentum": Preset(kind="sgd", weight_decay=0.0, momentum=0.9, trust="none"),
    "sgd": Preset(kind="sgd", weight_decay=0.0, trust="none"),
}


def find_preset(name: str, **settings: Any) -> Preset:
    """The preset of that name with the given settings changed."""
    check_names([name], PRESETS, "optimiser ")
    changeable = {item.name for item in fields(Preset)} - {"kind", "schedule", "clipping"}
    check_names(settings, changeable, f"optimiser {name}: ")
    preset = replace(PRESETS[name], **settings)
    beta1, beta2 = preset.betas
    check_values(asdict(preset) | {"beta1": beta1, "beta2": beta2}, _RANGES, f"optimiser {name}: ")
    return preset
