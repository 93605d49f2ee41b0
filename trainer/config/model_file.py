"""A model's file: Google's bert_config.json or transformers' config.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertdata.config.declared import schema_of
from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from trainer.config.foreign_keys import LABEL_KEYS, check_foreign_keys, foreign_warnings, label_warnings
from trainer.config.model import MEGATRON
from trainer.config.model_kinds import model_kind

TRAINED_ACT = "trained_hidden_act"
"""Key of our own in a bert_config.json: the activation, where Google's programs know it by no name."""

TRAINED_KIND = "trained_model_type"
"""Key of our own in a bert_config.json: the kind of model, where its program takes it for a BERT."""

_SAME_MODELS = {"xlm-roberta": "roberta", "camembert": "roberta"}
"""Kinds of models of transformers that differ from another one in their tokeniser alone."""

_OF_CLASSES = {
    "Roberta": "roberta",
    "XLMRoberta": "roberta",
    "Camembert": "roberta",
    "ModernBert": "modernbert",
}
"""The kind of model by the beginning of its class, where a file of pytorch-transformers 1 names no kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFile:
    """What a model's file says.

    keys: those of the model's shape, with the meaning of ModelConfig's kinds; a key that is not in the file
    is not here. label_keys: those of a classifier's labels, as the file has them. classes: transformers'
    classes that the model was saved as. warnings: about keys that are not read, each begins with the file.
    """

    keys: dict[str, Any]
    label_keys: Mapping[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_model_file(path: str, *, tanh: bool = False) -> ModelFile:
    """Return what a bert_config.json or config.json says. SettingsError begins with the file.

    tanh: the program computes ``gelu`` in its tanh form, as Google's, MLPerf's and NVIDIA's do.
    """
    values = read_object(path)
    if tanh and TRAINED_ACT not in values and values.get("hidden_act", "gelu") == "gelu":
        values["hidden_act"] = "gelu_new"
    return of_file(values, path)


def of_file(values: Mapping[str, Any], where: str) -> ModelFile:
    """Return what the keys of a bert_config.json or config.json say. SettingsError begins with the file."""
    try:
        return _of_file(values, where)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None


def _of_file(values: Mapping[str, Any], where: str) -> ModelFile:
    found = dict(values)
    if (trained := found.pop(TRAINED_ACT, None)) is not None:
        found["hidden_act"] = trained
    classes = _classes(found)
    trained_kind = found.pop(TRAINED_KIND, None)
    found["model_type"] = trained_kind or _kind_name(found, classes)
    if found["model_type"] == MEGATRON:
        found |= {"model_type": "bert", "megatron_residual_connection": True}
    kind = model_kind(found)
    known = kind.file_keys()
    check_foreign_keys(found)
    if trained_kind is None:
        found = kind.of_file(found)
    check_values({name: value for name, value in found.items() if name in known}, known)
    warnings = [*label_warnings(values), *foreign_warnings(found, known)]
    own = schema_of(kind)
    if "model_type" not in values and found["model_type"] == "bert":
        del found["model_type"]
    return ModelFile(
        keys={name: value for name, value in found.items() if name in own},
        label_keys={name: values[name] for name in LABEL_KEYS if name in values},
        classes=classes,
        warnings=tuple(f"{where}: {warning}" for warning in warnings),
    )


def _classes(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of transformers' classes in the file."""
    names = values.get("architectures")
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _kind_name(values: Mapping[str, Any], classes: tuple[str, ...]) -> Any:
    """The kind of model that the file names, or that its class tells."""
    name = values.get("model_type")
    if name is not None:
        return _SAME_MODELS.get(name, name) if isinstance(name, str) else name
    return next(
        (kind for start, kind in _OF_CLASSES.items() if classes and classes[0].startswith(start)), "bert"
    )
