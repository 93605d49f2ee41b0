"""Reading of TOML files from any source, with the line of each key for error messages."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertdata.errors import SettingsFileError
from bertdata.io.foreign_text import MOST_DIGITS, TOO_DEEP, decode_utf8, is_nested_too_deeply, read_bounded

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1 << 20
MOST_DOTS = 100
"""Most dots that a key may have. The time of Python's parser grows with the square of the number of dots."""

# A string, a comment, or a punctuation mark. Strings and comments must be matched as a whole, because they
# may contain the punctuation marks.
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{}=,.\n]''',
    re.DOTALL,
)
_BETWEEN_KEYS = frozenset("[]{}=,\n")


class TomlFile:
    """The tables of a TOML file.

    If the file is not valid TOML, SettingsFileError names the file and the line.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._text = decode_utf8(read_bounded(path, MOST_BYTES)).replace("\r\n", "\n")
            self.tables: Mapping[str, Any] = _parse(self._text)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            number = int(line[1]) if line else self._text.count("\n") + 1
            raise SettingsFileError(f"{path}:{number}: is not TOML: {error}") from None
        except ValueError as error:
            raise SettingsFileError(f"{path}: is not TOML: {error}") from None

    def where(self, keys: Sequence[str]) -> str:
        """Return ``FILE:LINE`` of a key or table, or just the file if the key is not in it.

        keys: path of the key, such as ["pack", "length"].
        """
        # tomllib does not tell line numbers. So parse each statement alone to find out which key it sets. The
        # heading "[a.b]" gives {"a": {"b": {}}}. The statement "c = 1" gives {"c": 1}, a key in the table of
        # the last heading.
        table: list[str] = []
        for line, statement in _split_statements(self._text):
            tables = tomllib.loads(statement)
            if statement.lstrip().startswith("["):
                table = _find_path(tables)
                is_found = table[: len(keys)] == list(keys)
            else:
                inner = keys[len(table) :]
                is_found = table == list(keys[: len(table)]) and _has_path(tables, inner)
            if is_found:
                return f"{self.path}:{line}"
        return self.path


def _parse(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises TOMLDecodeError if the text is not TOML, and ValueError if it exceeds a limit.
    """
    if _has_long_key(text):
        raise ValueError(f"a key of more than {MOST_DOTS} dots")
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: Python's limit on an integer's digits
        raise ValueError(TOO_DEEP if isinstance(error, RecursionError) else _TOO_LONG) from None
    if is_nested_too_deeply(tables):
        raise ValueError(TOO_DEEP)
    if any(isinstance(value, int) and abs(value) >= 10**MOST_DIGITS for value in _list_plain_values(tables)):
        raise ValueError(_TOO_LONG)
    return tables


_TOO_LONG = f"an integer of more than {MOST_DIGITS} digits"


def _has_long_key(text: str) -> bool:
    """Return True if a key in the text has more than MOST_DOTS dots."""
    dots = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ".":
            dots += 1
        elif token[0] in _BETWEEN_KEYS:
            dots = 0
        if dots > MOST_DOTS:
            return True
    return False


def _list_plain_values(value: Any) -> Iterator[Any]:
    """Yield every value that is neither a list nor a table."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _list_plain_values(inner)
    else:
        yield value


def _split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each statement in valid TOML.

    A statement is a table heading, or a key with its value, which may span several lines. Comments and blank
    lines are skipped.
    """
    line, start, depth = 1, 0, 0
    for token in _TOKEN.finditer(f"{text}\n"):
        mark = token[0]
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        if mark == "\n" and depth == 0:
            statement = text[start : token.start()]
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield line, statement
            line += statement.count("\n") + 1
            start = token.end()


def _find_path(tables: Any) -> list[str]:
    """Return the path of the only table in a parsed heading: [a, b] for ``[a.b]`` or ``[[a.b]]``."""
    found: list[str] = []
    while isinstance(tables, dict) and tables:
        [(key, inner)] = tables.items()
        found.append(key)
        tables = inner[0] if isinstance(inner, list) else inner
    return found


def _has_path(tables: Any, keys: Sequence[str]) -> bool:
    """Return True if the nested tables contain a value at this path of keys."""
    for key in keys:
        if not isinstance(tables, dict) or key not in tables:
            return False
        tables = tables[key]
    return True
