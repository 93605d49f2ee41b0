"""Look up template definitions in a template file. If a title has several, the last definition counts."""

import struct
from collections.abc import Iterator
from typing import Any

from bertdata.wiki.template_file import MAGIC

_HEAD = struct.Struct("<8sQQ")
_RECORD = struct.Struct("<5Q")


class TemplateTable:
    """Mapping from the titles of templates to their definitions, read from a template file in memory.

    Raises ValueError if the buffer is not a template file.
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
        # Records of equal titles follow one another in the dump's order, so dict() keeps the last definition.
        self._places = dict(self._read_records(templates))

    def _read_records(self, number: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield title and text position of each template, ordered by title and then as in the dump."""
        for record in range(number):
            title, title_bytes, text, text_bytes, _ = _RECORD.unpack_from(
                self._data, _HEAD.size + record * _RECORD.size
            )
            if title + title_bytes > len(self._texts) or text + text_bytes > len(self._texts):
                raise ValueError("template file: a record points beyond its end")
            yield _decode(self._texts[title : title + title_bytes]), (text, text + text_bytes)

    def get(self, title: str) -> str | None:
        """Return the template's text, or None if it is not defined."""
        place = self._places.get(title)
        return None if place is None else _decode(self._texts[slice(*place)])


def _decode(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")
