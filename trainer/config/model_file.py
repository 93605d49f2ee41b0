"""Reader of model files: Google's bert_config.json and transformers' config.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import derive_schemas
from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from trainer.config.foreign_keys import (
    LABEL_KEYS,
    check_foreign_keys,
    warn_of_foreign_keys,
    warn_of_label_keys,
)
from trainer.config.model import MEGATRON
from trainer.config.model_kinds import find_config_class

TRAINED_ACT = "trained_hidden_act"
"""Additional key in a bert_config.json that this trainer writes. Its value is the model's real activation, if
Google's programs do not have it.
"""

TRAINED_KIND = "trained_model_type"
"""Additional key in a bert_config.json that this trainer writes. Its value is the real model_type, if it is
not a BERT.
"""

_EQUIVALENT_TYPES = {"xlm-roberta": "roberta", "camembert": "roberta"}
"""Types of models in transformers that are the same as another type, except for their tokeniser."""

_TYPES_OF_CLASSES = {
    "Roberta": "roberta",
    "XLMRoberta": "roberta",
    "Camembert": "roberta",
    "ModernBert": "modernbert",
}
"""The model_type for names of classes that begin with a prefix. Files of pytorch-transformers 1 have no
model_type, but name a class.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFile:
    """The content of a model file.

    keys: fields of ModelConfig that the file sets, with names and values as this trainer has them.
    label_keys: keys about a classifier's labels, as in the file.
    classes: names of the transformers classes that the model was saved from.
    warnings: about keys that are ignored. Each begins with the file's path.
    """

    keys: dict[str, Any]
    label_keys: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_model_file(path: str, *, tanh: bool = False) -> ModelFile:
    """Read a bert_config.json or config.json. SettingsError begins with the path.

    tanh: True if ``gelu`` in the file means the tanh approximation, as in Google's, MLPerf's and NVIDIA's
    programs.
    """
    values = read_object(path)
    if tanh and TRAINED_ACT not in values and values.get("hidden_act", "gelu") == "gelu":
        values["hidden_act"] = "gelu_new"
    return parse_model_file(values, path)


def parse_model_file(values: Mapping[str, Any], where: str) -> ModelFile:
    """Translate a parsed bert_config.json or config.json to this trainer's keys.

    values: the content of the file.
    where: the file, with which the message of a SettingsError begins.
    """
    try:
        return _translate_model_file(values, where)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None


def _translate_model_file(values: Mapping[str, Any], where: str) -> ModelFile:
    """Translate a file's keys, step by step, to the fields of the model configuration."""
    found = dict(values)
    # 1. Undo what this trainer changed when it wrote the file for Google's programs. Extra keys store the
    # true activation and model_type.
    if (trained := found.pop(TRAINED_ACT, None)) is not None:
        found["hidden_act"] = trained
    classes = _find_class_names(found)
    trained_kind = found.pop(TRAINED_KIND, None)
    found["model_type"] = trained_kind or _find_model_type(found, classes)
    if found["model_type"] == MEGATRON:
        found |= {"model_type": "bert", "megatron_residual_connection": True}
    # 2. Find the configuration class, refuse unsupported models, and rename keys to the class's fields. If
    # the file has the key in which this trainer writes the model_type, its keys already have this trainer's
    # names.
    kind = find_config_class(found)
    known = kind.file_keys()
    check_foreign_keys(found)
    if trained_kind is None:
        found = kind.of_file(found)
    check_values({name: value for name, value in found.items() if name in known}, known)
    # 3. Keep only fields of this class. If the file has no model_type and it was guessed, it is dropped, so
    # that it cannot contradict a model_type that is set elsewhere.
    warnings = [*warn_of_label_keys(values), *warn_of_foreign_keys(found, known)]
    own = derive_schemas(kind)
    if "model_type" not in values and found["model_type"] == "bert":
        del found["model_type"]
    return ModelFile(
        keys={name: value for name, value in found.items() if name in own},
        label_keys={name: values[name] for name in LABEL_KEYS if name in values},
        classes=classes,
        warnings=tuple(f"{where}: {warning}" for warning in warnings),
    )


def _find_class_names(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of transformers' model classes in the file, such as BertForMaskedLM."""
    names = values.get("architectures")
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _find_model_type(values: Mapping[str, Any], classes: tuple[str, ...]) -> Any:
    """Return the file's model_type. If the file has none, it follows from the class names, or is "bert"."""
    name = values.get("model_type")
    if name is not None:
        return _EQUIVALENT_TYPES.get(name, name) if isinstance(name, str) else name
    return next(
        (kind for start, kind in _TYPES_OF_CLASSES.items() if classes and classes[0].startswith(start)),
        "bert",
    )
