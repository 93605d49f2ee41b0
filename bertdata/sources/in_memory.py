"""Records in memory: an iterable of texts or of dicts, a Dataset of Hugging Face, or a DataFrame.

They are read in the same way as files. For this, they are written as JSON lines to a file whose name contains
the md5 of its bytes. So a manifest identifies the records as it identifies a file, and the same records give
the same name, wherever they come from.
"""

import datetime
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from tempfile import NamedTemporaryFile
from typing import Any, Protocol

from bertdata.errors import InputError, SettingsError
from bertdata.io import storage

_TEXT_FIELD = "text"
"""Field in which a text becomes a record."""

_ROWS = 10_000
"""Rows of a DataFrame that are converted at a time."""

_TABLES = {"pandas": ("DataFrame",), "polars": ("DataFrame",), "datasets": ("Dataset", "IterableDataset")}
"""Names of the classes that are recognised as records, by the package that they belong to."""


class DataFrame(Protocol):
    """A DataFrame of pandas or polars. Its rows are records, and its columns are fields."""

    @property
    def columns(self) -> Any: ...


class Records:
    """Records in memory, which are a source of text for ``segment``, ``create`` and ``train_vocab``.

    source: texts, or dicts of fields, in any iterable; or a ``datasets.Dataset`` (also one that streams), or
        a DataFrame of pandas or polars. Fields may have the values of JSON, and also dates and the values of
        NumPy. A missing value of a DataFrame is None. Among texts, None is a missing text. A
        text becomes a record with the field ``text``.

    A source that can be read only once, such as a generator, can be used only once.
    """

    def __init__(self, source: Iterable[str | None] | Iterable[Mapping[str, Any]] | DataFrame) -> None:
        if isinstance(source, str | bytes | os.PathLike):
            raise SettingsError("records in memory are an iterable of texts or of dicts, found one text")
        if isinstance(source, Mapping):
            names = ", ".join(map(repr, list(source)[:3]))
            raise SettingsError(
                f"records in memory: found a mapping with the keys {names}; give one of its values"
            )
        if not isinstance(source, Iterable) and not hasattr(source, "__getitem__"):
            found = type(source).__name__
            raise SettingsError(
                f"records in memory: found {found}, expected an iterable of texts or of dicts"
            )
        self._source = source

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each record as a dict with values of JSON. Raises InputError for another value.

        A text becomes a record with the field ``text``, which is null for a missing text.
        """
        for number, value in enumerate(_iterate_rows(self._source), 1):
            is_text = isinstance(value, str) or _is_missing(value)
            if not is_text and not isinstance(value, Mapping):
                found = type(value).__name__
                raise InputError(f"record {number}: is of type {found}, expected a text or a dict of fields")
            fields = {_TEXT_FIELD: value} if is_text else value
            yield _convert_value(fields, f"record {number}")

    def write(self, directory: str | os.PathLike[str]) -> str:
        """Write the records as JSON lines into a directory, and return the path of the file.

        The file is called ``records-MD5.jsonl``, with the md5 of its bytes. A manifest of parts names its
        source in this way, and the command ``segment`` makes the same parts from the file.
        """
        folder = os.fspath(directory)
        storage.make_directory(folder)
        digest = hashlib.md5(usedforsecurity=False)
        with NamedTemporaryFile("wb", dir=folder, prefix=".records-", delete=False) as file:
            try:
                for number, record in enumerate(self, 1):
                    line = _encode_line(record, number)
                    digest.update(line)
                    file.write(line)
                file.flush()
                path = os.path.join(folder, f"records-{digest.hexdigest()}.jsonl")
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
        return path


def is_table_of_records(given: Any) -> bool:
    """Return True for a DataFrame of pandas or polars, and for a dataset of Hugging Face."""
    return _find_table_package(given) is not None


def _find_table_package(given: Any) -> str | None:
    """Return the package of a DataFrame or dataset, such as "pandas", or None for another object.

    The module of the object's class, or of a class that it is derived from, decides. So none of these
    packages is imported here.
    """
    for kind in type(given).__mro__:
        package = kind.__module__.partition(".")[0]
        if kind.__name__ in _TABLES.get(package, ()):
            return package
    return None


def _iterate_rows(source: Any) -> Iterator[Any]:
    """Yield the records of a source. Raises SettingsError for a table of an unknown package."""
    package = _find_table_package(source)
    if package == "pandas":
        for start in range(0, len(source), _ROWS):
            yield from source.iloc[start : start + _ROWS].to_dict("records")
    elif package == "polars":
        yield from source.iter_rows(named=True)
    elif package is None and _has_columns(source):
        yield from _refuse_column_names(source)
    else:
        yield from source


def _has_columns(source: Any) -> bool:
    """Return True if an object has the attribute ``columns``, as tables have in most packages."""
    columns = getattr(type(source), "columns", None)
    return columns is not None and not callable(columns)


def _refuse_column_names(source: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of an object with columns. Raises SettingsError if they are names and not records.

    Tables of Dask, Modin and others are iterables of the names of their columns.
    """
    for item in source:
        if isinstance(item, str):
            found = type(source)
            raise SettingsError(
                f"records in memory: found a table of the type {found.__module__}.{found.__name__}, expected "
                "a DataFrame of pandas or polars, or the rows as dicts"
            )
        yield item


def _is_missing(value: Any) -> bool:
    """Return True for None, and for the values that pandas and NumPy write in its place."""
    if isinstance(value, float):
        return value != value  # NaN
    return value is None or type(value).__name__ in ("NaTType", "NAType")


def _convert_value(value: Any, where: str) -> Any:
    """Return a value as a value of JSON.

    where: the record and the field, for the error message.
    """
    if _is_missing(value):
        return None
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _convert_value(item, f"{where}: field {name!r}") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_value(item, where) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    for method in ("tolist", "item"):  # arrays and numbers of NumPy
        if callable(convert := getattr(value, method, None)):
            return _convert_value(convert(), where)
    raise InputError(
        f"{where}: is of type {type(value).__name__}, expected a text, a number, a list or a dict; leave the "
        "field out"
    )


def _encode_line(record: Any, number: int) -> bytes:
    """Return a record as a line of JSON in UTF-8.

    Raises InputError for an infinite number, and for a text with half a surrogate pair, which is no Unicode.
    """
    try:
        return f"{json.dumps(record, ensure_ascii=False, allow_nan=False)}\n".encode()
    except ValueError as error:  # also UnicodeEncodeError
        raise InputError(f"record {number}: cannot be written as JSON in UTF-8: {error}") from None
