"""Construction of optimisers in tests, by the names of their presets."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import nn

from trainer.plugins import find
from trainer.update.optimiser import Optimiser, group_parameters
from trainer.update.optimisers import build_optimiser

OPTIMISERS_OF_RECIPES = ("stableadamw", "stableadamw-modernbert")


def make_optimiser(
    name: str, named_parameters: Iterable[tuple[str, nn.Parameter]], **settings: Any
) -> Optimiser:
    """Return the preset's optimiser with some settings changed.

    The caller still has to set lr and to clip.
    """
    preset = replace(find("optimiser", name), **settings)
    return build_optimiser(preset, group_parameters(preset, named_parameters))
