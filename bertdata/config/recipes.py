"""Named recipes: the settings of published data sets, as data."""

from dataclasses import dataclass
from typing import Any

from bertdata.config.settings import check
from bertdata.errors import SettingsError

Settings = dict[str, Any]
"""Settings of an objective by name; those left out have its default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A published data set's settings, one entry a phase. objective: the one whose settings they are."""

    name: str
    summary: str
    phases: tuple[Settings, ...]
    objective: str = "bert"

    def select(self, phase: int | None) -> dict[str, Settings]:
        """Settings by output sub-directory: one phase goes to the directory itself, two to phase1, phase2."""
        if phase is not None:
            check(1 <= phase <= len(self.phases), self._without_phase(phase))
            return {"": self.phases[phase - 1]}
        if len(self.phases) == 1:
            return {"": self.phases[0]}
        return {f"phase{number}": settings for number, settings in enumerate(self.phases, 1)}

    def _without_phase(self, phase: int) -> str:
        """The message for a phase that the recipe does not have."""
        if len(self.phases) > 1:
            return f"recipe {self.name} has phases 1 and 2; phase {phase} was asked for"
        others = ", ".join(recipe.name for recipe in RECIPES.values() if len(recipe.phases) > 1)
        return f"recipe {self.name} has one phase, phase {phase} was asked for; {others} have two"


def _two_phases(first: Settings, length: int, predictions: int) -> tuple[Settings, ...]:
    return first, {**first, "max_seq_length": length, "max_predictions_per_seq": predictions}


_NVIDIA_PHASES = _two_phases(
    {
        "dialect": "nvidia",
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "dupe_factor": 5,
        "format": "hdf5",
    },
    512,
    80,
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="mlperf",
            summary="MLPerf training v1.0: one phase of 512 ids, 76 predictions, dupe factor 10, TFRecord",
            phases=({},),
        ),
        Recipe(
            name="google",
            summary="Google's BERT release of 2018: 128 ids, 20 predictions, dupe factor 10, TFRecord",
            phases=({"dialect": "google", "max_seq_length": 128, "max_predictions_per_seq": 20},),
        ),
        Recipe(
            name="nvidia",
            summary="NVIDIA's LAMB pre-training: 128/20 then 512/80, dupe factor 5, HDF5",
            phases=_NVIDIA_PHASES,
        ),
        Recipe(
            name="habana",
            summary="Habana's PyTorch BERT on Gaudi: NVIDIA's data, 128/20 then 512/80, dupe factor 5, HDF5",
            phases=_NVIDIA_PHASES,
        ),
        Recipe(
            name="graphcore",
            summary="Graphcore's BERT on IPU: 128/20 then 384/58, dupe factor 5, seed 1984, TFRecord",
            phases=_two_phases(
                {
                    "dialect": "graphcore",
                    "max_seq_length": 128,
                    "max_predictions_per_seq": 20,
                    "dupe_factor": 5,
                    "random_seed": 1984,
                },
                384,
                58,
            ),
        ),
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name. SettingsError names the known ones."""
    try:
        return RECIPES[name]
    except KeyError:
        raise SettingsError(f"recipe {name!r} is not known; known are {', '.join(RECIPES)}") from None
