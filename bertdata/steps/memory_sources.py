"""Records in memory as the source of a step, which are written to a temporary file of JSON lines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bertdata.errors import BertDataError, MissingInputError, SettingsError
from bertdata.sources.in_memory import Records

Request = TypeVar("Request")

_KIND = "jsonl"

_WORDS_OF_TEXT = 4
"""Least number of words in a path that looks like a text, and not like the name of a file."""


@contextmanager
def open_records(request: Request, name: str) -> Iterator[Request]:
    """Yield the request with files in the place of records in memory.

    The files exist in the block only. They are called ``records-MD5.jsonl``, with the md5 of their bytes, and
    so is the source in a manifest and in an error message.

    name: the request's field with the sources.

    Raises MissingInputError if there is no source. Raises SettingsError if there are also paths among the
    sources, because a source of a run has a name relative to the other sources, and if two sources have the
    same records, because a file is read only once. Raises InputError if a value cannot be written as JSON.
    """
    given: Any = request
    sources = getattr(given, name)
    if not sources:
        raise MissingInputError(f"no {name} given")
    records = [source for source in sources if isinstance(source, Records)]
    if not records:
        with _hint_at_texts(sources):
            yield request
        return
    if len(records) < len(sources):
        raise SettingsError(f"{name}: found both paths and records in memory, expected one or the other")
    if given.input_kind not in (None, _KIND):
        raise SettingsError(
            f"input_kind is {given.input_kind!r}, but records in memory have no kind of file; leave it out"
        )
    with TemporaryDirectory(prefix="bertdata-") as folder:
        paths: list[str] = []
        for number, source in enumerate(records, 1):
            path = source.write(folder)
            if path in paths:
                raise SettingsError(
                    f"{name}: source {number} has the same records as source {paths.index(path) + 1}; give "
                    "them once"
                )
            paths.append(path)
        try:
            yield replace(given, **{name: paths, "input_kind": _KIND})
        except BertDataError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)  # the file is gone: its name tells enough
            raise


@contextmanager
def _hint_at_texts(paths: Sequence[str]) -> Iterator[None]:
    """Add a hint to the error about a missing file whose name looks like a text."""
    try:
        yield
    except MissingInputError as error:
        if any(len(path.split()) >= _WORDS_OF_TEXT for path in paths):
            error.args = (f"{error}; give texts in memory as bertdata.Records(texts)",)
        raise
