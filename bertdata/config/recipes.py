"""Settings of the example maker, and the named recipes that fill them in."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from bertdata.config.dialects import Dialect, find_dialect
from bertdata.errors import SettingsError
from bertdata.records import ShardLayout

FORMATS = ("tfrecord", "hdf5", "parquet")
LONGEST_SEQUENCE = 65_535


def setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleSettings:
    """Everything, besides the text and the vocabulary, that decides a shard's bytes."""

    dialect: str = setting("mlperf", "whose habits to follow: mlperf, google, nvidia or graphcore")
    max_seq_length: int = setting(512, "ids in an example, [CLS] and both [SEP] included")
    max_predictions_per_seq: int = setting(76, "most masked positions in an example")
    dupe_factor: int = setting(10, "passes over the text, each with masks of its own")
    random_seed: int = setting(12345, "seed of the one random stream; any integer")
    masked_lm_prob: float = setting(0.15, "share of an example's ids to mask")
    short_seq_prob: float = setting(0.1, "share of documents cut to a random shorter length")
    lower_case: bool = setting(True, "lower-case the text and strip its accents")
    whole_word_mask: bool = setting(False, "mask all pieces of a word or none")
    remask: bool = setting(False, "write Graphcore's order: masked positions first (TFRecord only)")
    format: str = setting("tfrecord", "container: tfrecord, hdf5 or parquet")

    def __post_init__(self) -> None:
        find_dialect(self.dialect)
        _check(
            5 <= self.max_seq_length <= LONGEST_SEQUENCE,
            f"max_seq_length is {self.max_seq_length}, expected 5 to {LONGEST_SEQUENCE}",
        )
        _check(
            1 <= self.max_predictions_per_seq <= self.max_seq_length,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, "
            f"expected 1 to max_seq_length ({self.max_seq_length})",
        )
        _check(self.dupe_factor >= 1, f"dupe_factor is {self.dupe_factor}, expected 1 or more")
        for name in ("masked_lm_prob", "short_seq_prob"):
            value = getattr(self, name)
            _check(0 <= value <= 1, f"{name} is {value}, expected a probability from 0 to 1")
        _check(self.format in FORMATS, f"format is {self.format!r}, expected one of {', '.join(FORMATS)}")
        _check(
            not (self.remask and self.format != "tfrecord"),
            f"remask needs the container tfrecord: {self.format} holds examples in their usual order",
        )
        _check(
            not (self.remask and not self.rules.fills_predictions),
            f"remask needs the dialect graphcore: those of {self.dialect} have too few masks",
        )
        _check(
            not (self.remask and self.max_predictions_per_seq == self.max_seq_length),
            "remask needs max_predictions_per_seq below max_seq_length, for the unmasked ids",
        )

    @property
    def rules(self) -> Dialect:
        return find_dialect(self.dialect)

    @property
    def layout(self) -> ShardLayout:
        return ShardLayout(
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
            remask=self.remask,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def with_changes(self, **changes: Any) -> "ExampleSettings":
        """A checked copy with the given fields changed."""
        known = {item.name for item in fields(self)}
        unknown = sorted(set(changes) - known)
        _check(not unknown, f"unknown settings: {', '.join(unknown)}")
        return replace(self, **changes)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise SettingsError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A published data set's settings, one entry a phase."""

    name: str
    summary: str
    phases: tuple[ExampleSettings, ...]

    def select(self, phase: int | None) -> dict[str, ExampleSettings]:
        """Settings by output sub-directory: one phase goes to the directory itself, two to phase1, phase2."""
        if phase is not None:
            _check(
                1 <= phase <= len(self.phases),
                f"recipe {self.name}: phase {phase} was asked for, the last is {len(self.phases)}",
            )
            return {"": self.phases[phase - 1]}
        if len(self.phases) == 1:
            return {"": self.phases[0]}
        return {f"phase{number}": settings for number, settings in enumerate(self.phases, 1)}


def _two_phases(first: ExampleSettings, length: int, predictions: int) -> tuple[ExampleSettings, ...]:
    return first, replace(first, max_seq_length=length, max_predictions_per_seq=predictions)


_NVIDIA_PHASES = _two_phases(
    ExampleSettings(
        dialect="nvidia", max_seq_length=128, max_predictions_per_seq=20, dupe_factor=5, format="hdf5"
    ),
    512,
    80,
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="mlperf",
            summary="MLPerf training v1.0: one phase of 512 ids, 76 predictions, dupe factor 10, TFRecord",
            phases=(ExampleSettings(),),
        ),
        Recipe(
            name="google",
            summary="Google's BERT release of 2018: 128 ids, 20 predictions, dupe factor 10, TFRecord",
            phases=(ExampleSettings(dialect="google", max_seq_length=128, max_predictions_per_seq=20),),
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
            summary="Graphcore's BERT on IPU: 128/20 then 384/58, dupe factor 6, seed 1984, TFRecord",
            phases=_two_phases(
                ExampleSettings(
                    dialect="graphcore",
                    max_seq_length=128,
                    max_predictions_per_seq=20,
                    dupe_factor=6,
                    random_seed=1984,
                ),
                384,
                58,
            ),
        ),
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name; SettingsError names the known ones."""
    try:
        return RECIPES[name]
    except KeyError:
        raise SettingsError(f"recipe {name!r} is not known; known are {', '.join(RECIPES)}") from None
