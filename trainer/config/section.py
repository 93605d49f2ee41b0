"""Base of the configuration's sections."""

from dataclasses import dataclass, fields
from typing import Any

from bertdata.config.value_check import check_values
from bertdata.errors import SettingsError
from trainer.config.schema import device_option_properties, properties


@dataclass(frozen=True, kw_only=True)
class Section:
    """Keys of one subject, checked against their schema; the meaning of None is in a key's description."""

    def __post_init__(self) -> None:
        """SettingsError for the first value of a wrong type or out of its range."""
        check_values(self.values(), properties())
        given = {name: value for name, value in self.values().items() if value is not None}
        check_values(given, device_option_properties())

    def values(self) -> dict[str, Any]:
        """The values by key."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check(holds: bool, message: str) -> None:
    """SettingsError with the message unless the condition holds."""
    if not holds:
        raise SettingsError(message)
