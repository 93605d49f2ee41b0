"""The kinds of models by name, and the configuration that a file's keys describe."""

from collections.abc import Mapping
from typing import Any

from bertdata.config.declared import schema_of
from bertdata.config.value_check import check_names, check_values, types_of
from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.plugins import find, is_name

_USUAL = "bert"


def model_kind(values: Mapping[str, Any]) -> type[ModelConfig]:
    """Return the class of the kind of model that these keys describe. An unknown kind is read as a BERT."""
    name = str(values.get("model_type"))
    is_known = is_name("model settings", name) or ":" in name
    kind: type[ModelConfig] = find("model settings", name if is_known else _USUAL)
    return kind


def read_model_config(values: Mapping[str, Any], where: str = "model configuration") -> ModelConfig:
    """Return the configuration of a bert_config.json or config.json. SettingsError names a foreign key."""
    try:
        kind = model_kind(values)
        known = schema_of(kind) if values.keys() <= schema_of(kind).keys() else kind.file_keys()
        check_names(values, known)
        check_values(values, known)
        own = schema_of(kind)
        return kind(**{name: _typed(value, own[name]) for name, value in values.items() if name in own})
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value in Python's type. JSON has one for whole numbers and others: 0 and 0.0 are one dropout."""
    kinds = types_of(schema)
    if value is None:
        return None
    if "number" in kinds:
        return float(value)
    return int(value) if "integer" in kinds else value
