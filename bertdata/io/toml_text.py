"""TOML files, with the line of each key for errors."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io.storage import read_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class TomlFile:
    """The tables of a TOML file. SettingsError names the file, and the line that is not TOML."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._text = read_bytes(path).decode()
        except UnicodeDecodeError:
            raise SettingsError(f"{path}: is not TOML: not UTF-8") from None
        try:
            self.tables: Mapping[str, Any] = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            number = int(line[1]) if line else self._text.count("\n") + 1
            raise SettingsError(f"{path}:{number}: is not TOML: {error}") from None
        except RecursionError:
            raise SettingsError(f"{path}: is not TOML: its values are nested too deeply") from None

    def where(self, keys: Sequence[str]) -> str:
        """``FILE:LINE`` of the key or table that these lead to, or of the file where it is not there."""
        lines, begun = self._text.splitlines(keepends=True), 0
        for number in range(1, len(lines) + 1):
            try:
                tables = tomllib.loads("".join(lines[:number]))
            except tomllib.TOMLDecodeError:
                continue  # the first lines of a value of several
            if _holds(tables, keys):
                return f"{self.path}:{begun + 1}"
            begun = number
        return self.path


def _holds(tables: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(tables, dict) or key not in tables:
            return False
        tables = tables[key]
    return True
