"""Model architectures by name, and the model configuration that a file's keys describe."""

from collections.abc import Mapping
from typing import Any

from bertdata.config.declared import derive_schemas
from bertdata.config.value_check import check_names, check_values, list_types
from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.plugins import find, is_name

_USUAL = "bert"


def find_config_class(values: Mapping[str, Any]) -> type[ModelConfig]:
    """Return the configuration class for the model_type among the keys of a model file.

    A model_type that this trainer does not know is treated as a BERT.
    """
    name = str(values.get("model_type"))
    is_known = is_name("model settings", name) or ":" in name
    kind: type[ModelConfig] = find("model settings", name if is_known else _USUAL)
    return kind


def read_model_config(values: Mapping[str, Any], where: str = "model configuration") -> ModelConfig:
    """Return the model configuration described by the keys of a bert_config.json or config.json.

    SettingsError for an unknown key or a wrong value.
    where: the source of the keys, with which the message begins.
    """
    try:
        kind = find_config_class(values)
        known = derive_schemas(kind) if values.keys() <= derive_schemas(kind).keys() else kind.file_keys()
        check_names(values, known)
        check_values(values, known)
        own = derive_schemas(kind)
        return kind(
            **{name: _convert_number(value, own[name]) for name, value in values.items() if name in own}
        )
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None


def _convert_number(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert a number from JSON to the key's type, float or int.

    JSON does not distinguish 0 from 0.0, so that a dropout may be written as either.
    """
    kinds = list_types(schema)
    if value is None:
        return None
    if "number" in kinds:
        return float(value)
    return int(value) if "integer" in kinds else value
