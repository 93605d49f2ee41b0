"""Conversion and checks of arguments that Python callers pass."""

import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, get_args

from bertdata._native import Engine
from bertdata.config.declared import MAX_INTEGER
from bertdata.errors import SettingsError
from bertdata.io.process_pool import count_available_cores
from bertdata.sources.in_memory import DataFrame, Records, is_table_of_records

AnyPath = str | os.PathLike[str]
"""A path or a URL."""

AnyPaths = AnyPath | Iterable[AnyPath]
"""One path or several."""

AnySources = (
    AnyPaths | Records | DataFrame | Iterable[Records] | Iterable[DataFrame] | Iterable[Mapping[str, Any]]
)
"""One path or several, or records in memory: ``Records``, a DataFrame, a dataset, an iterable of dicts."""


def convert_path(path: AnyPath) -> str:
    """Return a path-like object as a string."""
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(found, str):
        raise SettingsError(f"path {path!r}: expected a str or a PathLike of str")
    return found


def list_paths(paths: AnySources) -> list[str]:
    """Return one path or several paths as a list of strings, in the same order.

    Raises SettingsError for records in memory, which are no paths.
    """
    given: Any = paths
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return [convert_path(path) for path in given]
    return [convert_path(given)]


def list_sources(given: AnySources) -> list[str | Records]:
    """Return sources of text as a list of paths and of records in memory, in the same order.

    A DataFrame, a dataset of Hugging Face and an iterable of dicts become records. Texts in an iterable are
    paths, unless the iterable is wrapped as ``Records``.
    """
    sources: Any = given
    if isinstance(sources, Records):
        return [sources]
    if is_table_of_records(sources) or isinstance(sources, Mapping):
        return [Records(sources)]
    if isinstance(sources, str | bytes | os.PathLike) or not isinstance(sources, Iterable):
        return [convert_path(sources)]  # type: ignore[arg-type]  # raises an error unless it is a path
    items = iter(sources)
    for first in items:
        everything = chain([first], items)
        if isinstance(first, Mapping):
            return [Records(sources if isinstance(sources, Sequence) else everything)]
        return [_convert_source(source) for source in everything]
    return []


def _convert_source(source: Any) -> str | Records:
    """Return a source in a list of sources as a path or as records in memory."""
    if isinstance(source, Records):
        return source
    return Records(source) if is_table_of_records(source) else convert_path(source)


def convert_optional_path(path: AnyPath | None) -> str | None:
    """Return a path-like object as a string. None stays None."""
    return None if path is None else convert_path(path)


MOST_WORKERS = 4096
"""Most processes of a command. Starting more takes minutes before any of them works."""


def count_workers(workers: int | None) -> int:
    """Return how many worker processes to start.

    workers: the number that the caller chose. None: one per core.
    """
    if workers is None:
        return count_available_cores()
    number = check_positive_integer("workers", workers)
    if number > MOST_WORKERS:
        raise SettingsError(f"workers is {number}, expected at most {MOST_WORKERS}")
    return number


def check_positive_integer(name: str, value: int) -> int:
    """Return the value if it is an integer of at least 1. Raises SettingsError if it is not.

    name: name of the argument, for the message.
    """
    if type(value) is not int:
        raise SettingsError(f"{name} is {value!r}, expected an integer")
    if value < 1:
        raise SettingsError(f"{name} is {value}, expected 1 or more")
    if value > MAX_INTEGER:
        raise SettingsError(f"{name} is larger than {MAX_INTEGER}, expected a smaller number")
    return value


def convert_share(name: str, value: Any) -> Any:
    """Return a share as a percentage with its sign. A number is a part of 1: 0.05 gives ``5.00%``.

    A value that is not a number is returned unchanged, for the setting to check.

    name: name of the argument, for the message.

    Raises SettingsError for a number that is not between 0 and 1.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not 0 < value < 1:
        raise SettingsError(
            f"{name} is {value}, expected a number above 0 and below 1, or a text such as '5%'"
        )
    return f"{Decimal(str(float(value))) * 100:f}%"


def join_names(name: str, value: str | Iterable[str]) -> str:
    """Return names as a text with commas between them. A text is returned unchanged.

    name: name of the argument, for the message.

    Raises SettingsError for anything else, and if there is no name.
    """
    if isinstance(value, str):
        return value
    names = list(value) if isinstance(value, Iterable) else []
    if not names or not all(isinstance(one, str) for one in names):
        raise SettingsError(f"{name} is {value!r}, expected texts in a list, or one text with commas")
    return ",".join(names)


def check_engine(engine: Engine | None) -> None:
    """Raise SettingsError if the engine is unknown."""
    if engine is not None and engine not in get_args(Engine):
        raise SettingsError(f"engine is {engine!r}, expected {' or '.join(get_args(Engine))}")
