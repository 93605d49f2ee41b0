"""Recipes: the settings with which published data sets were made, under names such as mlperf.

A recipe has one phase or two phases of pre-training, which use different sequence lengths.
"""

from dataclasses import dataclass
from typing import Any, Literal

from bertdata.config.settings import require
from bertdata.errors import SettingsError

Settings = dict[str, Any]
"""Settings of an objective, by name. A setting that is left out has the objective's default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The settings of a published data set, for one or two phases of pre-training.

    phases: one dictionary for each phase, with the settings that differ from the objective's defaults.
    objective: name of the objective that the settings belong to.
    extractor: version of the Wikipedia extractor that the original program uses. It is the newest version if
        the program names none.

    For encoders published after BERT, three texts say how similar the data are to the published data set:

    exact: what is identical.
    distribution: what is not identical but drawn from the same random distribution.
    paper: what is known only from a publication, not from the program.
    """

    name: str
    summary: str
    phases: tuple[Settings, ...]
    objective: str = "bert"
    extractor: Literal["3.1.0", "mlperf"] = "3.1.0"
    exact: str = ""
    distribution: str = ""
    paper: str = ""

    def select(self, phase: int | None) -> dict[str, Settings]:
        """Return the settings of one phase or of all phases, by the sub-directory that the phase is written
        to.

        A single phase is written to the output directory itself, so its key is "". Two phases are written to
        phase1 and phase2.

        phase: number of the phase, from 1. None means all phases.

        Raises SettingsError for an unknown phase.
        """
        if phase is not None:
            require(1 <= phase <= len(self.phases), self._make_phase_message(phase))
            return {"": self.phases[phase - 1]}
        if len(self.phases) == 1:
            return {"": self.phases[0]}
        return {f"phase{number}": settings for number, settings in enumerate(self.phases, 1)}

    @property
    def fidelity(self) -> dict[str, str]:
        """The texts exact, distribution and paper that are not empty, by name."""
        found = {name: getattr(self, name) for name in ("exact", "distribution", "paper")}
        return {name: words for name, words in found.items() if words}

    @property
    def varied(self) -> set[str]:
        """Names of the settings that differ between the phases."""
        names = {name for phase in self.phases for name in phase}
        return {name for name in names if any(p.get(name) != self.phases[0].get(name) for p in self.phases)}

    def _make_phase_message(self, phase: int) -> str:
        """Return the error message for a phase that this recipe does not have."""
        if len(self.phases) > 1:
            return f"recipe {self.name} has phases 1 and 2; phase {phase} was asked for"
        others = ", ".join(recipe.name for recipe in RECIPES.values() if len(recipe.phases) > 1)
        return f"recipe {self.name} has one phase, phase {phase} was asked for; {others} have two"


def _make_two_phases(first: Settings, length: int, predictions: int) -> tuple[Settings, ...]:
    """Return the settings of two phases, which differ only in sequence length and number of masks.

    first: settings of the first phase.
    length, predictions: sequence length and number of masks of the second phase.
    """
    return first, {**first, "max_seq_length": length, "max_predictions_per_seq": predictions}


def _make_phases(first: Settings, *lengths: int) -> tuple[Settings, ...]:
    """Return the settings of one phase for each of the lengths. The phases differ only in max_seq_length.

    first: the settings that all phases share.
    """
    return tuple({**first, "max_seq_length": length} for length in lengths)


_NVIDIA_PHASES = _make_two_phases(
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

_UNMASKED = {"objective": "mlm", "masks": False}
_NOTHING = "nothing"

ENCODERS = (
    Recipe(
        name="roberta",
        summary="RoBERTa: blocks of 512 ids of whole sentences, 15 % to be masked at load, TFRecord",
        objective="mlm",
        phases=({**_UNMASKED, "blocks": "complete", "masked_lm_prob": 0.15},),
        exact="where fairseq's mode complete ends a block, of text without blank lines whose sentences fit; "
        "masks with --masking fairseq at load",
        distribution="the order of the blocks; masks with --masking dynamic at load",
        paper="batches of 8,192 blocks; fairseq's own base.yaml has 2,048",
    ),
    Recipe(
        name="modernbert",
        summary="ModernBERT: text of a document, 1,024 then 8,192 ids, 30 % to be masked at load, TFRecord",
        objective="mlm",
        phases=_make_phases({**_UNMASKED, "masked_lm_prob": 0.3}, 1024, 8192),
        exact="order, packing and masks of given sequences, with --masking modernbert at load",
        distribution="the sequences: blocks of whole sentences of a document, a [SEP] behind each, where the "
        "original cuts documents at the length; masks with --masking dynamic at load",
        paper=_NOTHING,
    ),
    Recipe(
        name="ettin",
        summary="Ettin: text of a document, 1,024 then 7,999 ids, 30 % to be masked at load, TFRecord",
        objective="mlm",
        phases=_make_phases({**_UNMASKED, "masked_lm_prob": 0.3}, 1024, 7999),
        exact=_NOTHING,
        distribution="blocks of whole sentences of a document, a [SEP] behind each, where the original cuts "
        "documents into pieces and fills the short last ones; masks drawn at load, of the last 50 billion "
        "tokens 15 %",
        paper=_NOTHING,
    ),
    Recipe(
        name="mosaicbert",
        summary="MosaicBERT: text of a document, 128 ids, 30 % to be masked at load, TFRecord",
        objective="mlm",
        phases=({**_UNMASKED, "max_seq_length": 128, "masked_lm_prob": 0.3},),
        exact=_NOTHING,
        distribution="blocks of whole sentences, where the original has text in MDS (column text), cut "
        "and masked at load",
        paper="128 ids and 30 %",
    ),
    Recipe(
        name="neobert",
        summary="NeoBERT: joined text, 1,024 then 4,096 ids, 20 % to become [MASK] at load, TFRecord",
        objective="mlm",
        phases=_make_phases(
            {
                **_UNMASKED,
                "blocks": "none",
                "masked_lm_prob": 0.2,
                "mask_share": 1.0,
                "random_share": 0.0,
                "kept_share": 0.0,
            },
            1024,
            4096,
        ),
        exact=_NOTHING,
        distribution="joined ids of a part, cut at the length, where the original joins a batch's; masks "
        "drawn at load, all [MASK], no special token",
        paper=_NOTHING,
    ),
    Recipe(
        name="electra",
        summary="ELECTRA: unmasked examples of one or two segments, 128 ids, TFRecord",
        objective="electra",
        phases=({"objective": "electra", "dialect": "google", "max_seq_length": 128},),
        exact="every example, where random is seeded with --random-seed: those of each part by itself, "
        "or with --as-original those of one process over all parts, and its files",
        distribution="masks, which the program's trainer draws",
        paper=_NOTHING,
    ),
)
"""Recipes for encoders that were published after BERT.

Sequence length and masking rate come from the original program, unless the field ``paper`` names a
publication.
"""

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="mlperf",
            summary="MLPerf training v1.0: one phase of 512 ids, 76 predictions, dupe factor 10, TFRecord",
            phases=({},),
            extractor="mlperf",
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
            extractor="mlperf",
        ),
        Recipe(
            name="habana",
            summary="Habana's PyTorch BERT on Gaudi: NVIDIA's data, 128/20 then 512/80, dupe factor 5, HDF5",
            phases=_NVIDIA_PHASES,
            extractor="mlperf",
        ),
        Recipe(
            name="graphcore",
            summary="Graphcore's BERT on IPU: 128/20 then 384/58, dupe factor 5, seed 1984, TFRecord",
            phases=_make_two_phases(
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
        *ENCODERS,
    )
}


def find_recipe(name: str) -> Recipe:
    """Return the recipe of this name. Raises SettingsError for an unknown name and lists the known names."""
    try:
        return RECIPES[name]
    except KeyError:
        raise SettingsError(f"recipe {name!r} is not known; known are {', '.join(RECIPES)}") from None
