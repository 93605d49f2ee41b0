"""Optimisers by name, each with the behaviour of its original program."""

from trainer.config.optimisers import PRESETS, Preset, find_preset
from trainer.optim.clipping import clip_
from trainer.optim.lamb import Lamb
from trainer.optim.norms import LOCAL_NORMS, Norms
from trainer.optim.optimiser import Numbers, Optimiser, Rule, Tensors
from trainer.optim.presets import build_optimiser, group_parameters, make_optimiser

__all__ = [
    "LOCAL_NORMS",
    "PRESETS",
    "Lamb",
    "Norms",
    "Numbers",
    "Optimiser",
    "Preset",
    "Rule",
    "Tensors",
    "build_optimiser",
    "clip_",
    "find_preset",
    "group_parameters",
    "make_optimiser",
]
