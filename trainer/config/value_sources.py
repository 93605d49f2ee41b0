"""Where the values of a configuration came from, and what two sources say against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import schema_of
from trainer.config.environment import keys_of_environment
from trainer.config.model import ModelConfig
from trainer.config.model_file import read_model_file
from trainer.config.model_kinds import model_kind
from trainer.config.modernbert import ModernBertConfig
from trainer.config.settings import Config

DEFAULT = "default"
"""The source of a value that nobody gave."""

PRESET_KEYS = (
    *("beta1", "beta2", "optimiser_epsilon", "epsilon_in", "weight_decay", "use_debiasing", "momentum"),
)
"""The keys whose usual values are the optimiser's."""

_SHAPE = "hidden_size"
_DERIVED = "intermediate_size"


@dataclass(frozen=True, kw_only=True, slots=True)
class Layered:
    """A phase's configuration, and where it came from.

    sources: of each given key: a flag, a file, another program, what a command usually takes.
    contradictions: a line for each pair of sources of which one describes another model.
    """

    config: Config
    sources: Mapping[str, str]
    contradictions: Sequence[str] = field(default=())


def under_model_file(
    lower: Mapping[str, Any], upper: Mapping[str, Any], lower_name: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the lower keys without those that the upper keys' model file gives, and lines that say so.

    A model file on the command line goes before the shape that a configuration under it has. Keys that the
    file does not have stay, unless they are another kind of model's.
    """
    path = upper.get("model_config")
    given = {name: value for name, value in lower.items() if value is not None and name in model_keys()}
    if path is None or not given:
        return dict(lower), []
    in_file = read_model_file(path).keys
    dropped = set(in_file)
    if model_kind(in_file) is not model_kind(given):
        dropped = model_keys()
    elif _SHAPE in in_file:
        dropped.add(_DERIVED)  # the file's, or what its program computes
    differing = [name for name in given if name in dropped and in_file.get(name) != given[name]]
    lines = []
    if differing:
        words = ", ".join(f"{name} {given[name]}" for name in differing)
        lines = [f"--model-config {path} goes before {lower_name}, whose {words} are not taken"]
    return {name: value for name, value in lower.items() if name not in dropped}, lines


def over_model_file(keys: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """Return a line for each key that goes before the model file and says something else than it."""
    path = keys.get("model_config")
    given = {name: value for name, value in keys.items() if value is not None and name in model_keys()}
    if path is None or not given:
        return []
    in_file = read_model_file(path).keys
    return [
        f"{name} is {value} by {sources[name]}, which goes before the {in_file[name]} of {path}"
        for name, value in given.items()
        if name in in_file and in_file[name] != value
    ]


def model_keys() -> set[str]:
    """Return the keys of all kinds of models that a model file may give."""
    return {*schema_of(ModelConfig), *schema_of(ModernBertConfig)}


def source_of_each(config: Config, given: Mapping[str, str]) -> dict[str, str]:
    """Return the source of every key's value, those of the model's file, optimiser and schedule among them.

    given: the sources of the keys that are given.
    """
    keys = config.values()
    optimiser = f"optimiser {config.update.optimiser}"
    usual = dict.fromkeys((*PRESET_KEYS, "lr_schedule", "clipping"), optimiser)
    usual |= dict.fromkeys(config.schedule_kind.defaults, f"lr_schedule {config.schedule_name}")
    if (model_file := config.model.model_config) is not None:
        usual |= dict.fromkeys(read_model_file(model_file).keys, model_file)
    sources = dict.fromkeys(keys, DEFAULT)
    sources |= {name: source for name, source in usual.items() if name in keys and keys[name] is None}
    sources |= {name: source for name, source in given.items() if keys.get(name) is not None}
    return sources | {name: variable for name, (_, variable) in keys_of_environment(keys).items()}
