"""The sources of a configuration's values, and warnings about two sources that contradict each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import derive_schemas
from trainer.config.environment import find_environment_keys
from trainer.config.model import ModelConfig
from trainer.config.model_file import read_model_file
from trainer.config.model_kinds import find_config_class
from trainer.config.modernbert import ModernBertConfig
from trainer.config.settings import Config

DEFAULT = "default"
"""Name of the source of a value if neither the user nor the command has set the key."""

PRESET_KEYS = (
    *("beta1", "beta2", "optimiser_epsilon", "epsilon_in", "weight_decay", "use_debiasing", "momentum"),
)
"""Keys whose default is the value in the preset of the chosen optimiser."""

_SHAPE = "hidden_size"
_DERIVED = "intermediate_size"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayeredConfig:
    """The configuration of a phase, with the sources of its values.

    sources: for each key that is set, its source as text: a flag, a file, another program, or the command.
    contradictions: warnings about two sources that describe different models.
    """

    config: Config
    sources: Mapping[str, str]
    contradictions: Sequence[str] = field(default=())


def drop_keys_of_model_file(
    lower: Mapping[str, Any], upper: Mapping[str, Any], lower_name: str
) -> tuple[dict[str, Any], list[str]]:
    """Drop keys of a configuration file that contradict the model file named on the command line.

    Return the keys that are kept, and a warning that names the dropped keys. Keys about the model that the
    model file does not have are kept, unless it describes another architecture.

    lower: keys of a configuration file, or keys that follow from another program's command line.
    upper: flags, which may name a model file.
    lower_name: what the warnings call the source of ``lower``.
    """
    path = upper.get("model_config")
    given = {name: value for name, value in lower.items() if value is not None and name in list_model_keys()}
    if path is None or not given:
        return dict(lower), []
    in_file = read_model_file(path).keys
    dropped = set(in_file)
    if find_config_class(in_file) is not find_config_class(given):
        dropped = list_model_keys()
    elif _SHAPE in in_file:
        dropped.add(_DERIVED)  # intermediate_size belongs to the hidden_size of its source
    differing = [name for name in given if name in dropped and in_file.get(name) != given[name]]
    lines = []
    if differing:
        words = ", ".join(f"{name} {given[name]}" for name in differing)
        lines = [f"--model-config {path} goes before {lower_name}, whose {words} are not taken"]
    return {name: value for name, value in lower.items() if name not in dropped}, lines


def warn_of_overridden_keys(keys: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """Return a warning for each key about the model whose value differs from the model file's."""
    path = keys.get("model_config")
    given = {name: value for name, value in keys.items() if value is not None and name in list_model_keys()}
    if path is None or not given:
        return []
    in_file = read_model_file(path).keys
    return [
        f"{name} is {value} by {sources[name]}, which goes before the {in_file[name]} of {path}"
        for name, value in given.items()
        if name in in_file and in_file[name] != value
    ]


def list_model_keys() -> set[str]:
    """Return the names of the keys that describe a model, for all architectures."""
    return {*derive_schemas(ModelConfig), *derive_schemas(ModernBertConfig)}


def find_sources(config: Config, given: Mapping[str, str]) -> dict[str, str]:
    """Return the source of the value of every key, such as a flag, the model file, the optimiser or the
    schedule.

    given: source of each key that is set.
    """
    keys = config.values()
    optimiser = f"optimiser {config.update.optimiser}"
    usual = dict.fromkeys((*PRESET_KEYS, "lr_schedule", "clipping"), optimiser)
    usual |= dict.fromkeys(config.schedule_kind.defaults, f"lr_schedule {config.schedule_name}")
    if (model_file := config.model.model_config) is not None:
        usual |= dict.fromkeys(read_model_file(model_file).keys, model_file)
    # Later lines override earlier ones. First, all keys have their defaults. A key whose value is None gets
    # its value from the optimiser, the schedule or the model file. A key that is set has the source that
    # ``given`` names. Environment variables override everything else.
    sources = dict.fromkeys(keys, DEFAULT)
    sources |= {name: source for name, source in usual.items() if name in keys and keys[name] is None}
    sources |= {name: source for name, source in given.items() if keys.get(name) is not None}
    return sources | {name: variable for name, (_, variable) in find_environment_keys(keys).items()}
