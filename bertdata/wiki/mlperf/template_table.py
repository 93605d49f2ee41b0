"""Looks up template definitions in a template file. If a title has several definitions, the last is used."""

import struct
from collections.abc import Iterator
from typing import Any

from bertdata.wiki.template_file import MAGIC

_HEAD = struct.Struct("<8sQQ")
_RECORD = struct.Struct("<5Q")


class TemplateTable:
    """Table of template definitions by title, read from the content of a template file.

    Raises ValueError if the content is not that of a template file.
    """

    def __init__(self, file: Any) -> None:
        self._data = memoryview(file)
        if self._data[: len(MAGIC)] != MAGIC:
            raise ValueError("template file: does not begin with its mark")
        if len(self._data) < _HEAD.size:
            raise ValueError("template file: ends within its head")
        _, templates, redirects = _HEAD.unpack_from(self._data)
        if templates + redirects > (len(self._data) - _HEAD.size) // _RECORD.size:
            raise ValueError("template file: has no room for its records")
        self._texts = self._data[_HEAD.size + (templates + redirects) * _RECORD.size :]
        # Definitions with the same title follow one another in the order of the dump, so dict() keeps the
        # last.
        self._places = dict(self._read_records(templates))

    def _read_records(self, number: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the title of each template, and the offset and size of its text in the file.

        The templates are sorted by title. Templates with the same title are in the order of the dump.
        """
        for record in range(number):
            title, title_bytes, text, text_bytes, _ = _RECORD.unpack_from(
                self._data, _HEAD.size + record * _RECORD.size
            )
            if title + title_bytes > len(self._texts) or text + text_bytes > len(self._texts):
                raise ValueError("template file: a record points beyond its end")
            yield _decode(self._texts[title : title + title_bytes]), (text, text + text_bytes)

    def get(self, title: str) -> str | None:
        """Return the definition of a template, or None if there is none."""
        place = self._places.get(title)
        return None if place is None else _decode(self._texts[slice(*place)])


def _decode(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")
