"""A model's file: Google's bert_config.json or transformers' config.json."""

from collections.abc import Mapping
from typing import Any

from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from trainer.config.model_kinds import model_kind

TRAINED_ACT = "trained_hidden_act"
"""Key of our own in a bert_config.json: the activation, where Google's programs know it by no name."""


def read_model_file(path: str) -> dict[str, Any]:
    """The keys of the file with the meaning of ModelConfig's kinds."""
    return of_file(read_object(path), path)


def of_file(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keys of a bert_config.json or config.json with the meaning of ModelConfig's kinds.

    SettingsError begins with the file.
    """
    found = dict(values)
    if (trained := found.pop(TRAINED_ACT, None)) is not None:
        found["hidden_act"] = trained
    try:
        kind = model_kind(found)
        known = kind.file_keys()
        found = kind.of_file(found)
        check_values({name: value for name, value in found.items() if name in known}, known)
        return found
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None
