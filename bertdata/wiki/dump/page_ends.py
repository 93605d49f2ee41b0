"""Finds the ends of pages in the text of a dump. The text may be cut into blocks there."""

_CLOSE = b"</page>"
_INDENT_BYTES = 64


class PageEnds:
    """Search for page ends, which are the positions after ``</page>``.

    Each search returns -1 if it finds none.
    """

    def find_first(self, data: bytes, start: int) -> int:
        """Return the first page end after ``start``."""
        at = data.find(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def find_last(self, data: bytes, start: int) -> int:
        """Return the last page end whose tag ``</page>`` starts at ``start`` or later."""
        at = data.rfind(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def find_searched_end(self, data: bytes) -> int:
        """Return the offset at which the next search must start, when a search in all the data has failed.

        Even after more data are appended, no ``</page>`` starts before this offset.
        """
        return max(0, len(data) - len(_CLOSE) + 1)


class LinePageEnds(PageEnds):
    """Search for page ends by the rules of MLPerf's extractor: the ends of lines that start with ``</page>``.

    That extractor looks only at the first tag of each line.
    """

    def find_first(self, data: bytes, start: int) -> int:
        """Return the first page end after ``start``."""
        while (at := data.find(_CLOSE, start)) >= 0:
            if (end := _find_line_end(data, at)) >= 0:
                return end
            start = at + 1
        return -1

    def find_last(self, data: bytes, start: int) -> int:
        """Return the last page end whose tag ``</page>`` starts at ``start`` or later."""
        at = len(data)
        while (at := data.rfind(_CLOSE, start, at)) >= 0:
            if (end := _find_line_end(data, at)) >= 0:
                return end
        return -1

    def find_searched_end(self, data: bytes) -> int:
        """Return the offset at which the next search must start, when a search in all the data has failed."""
        return data.rfind(b"\n") + 1


def _find_line_end(data: bytes, tag: int) -> int:
    """Return the end of the line that starts with a tag.

    tag: offset of the tag.

    Returns -1 if other text is before the tag on its line, or if the line is incomplete.
    """
    # Before the tag, the line may contain only blanks, and at most _INDENT_BYTES of them.
    line = data.rfind(b"\n", max(0, tag - _INDENT_BYTES), tag) + 1
    if data[line or max(0, tag - _INDENT_BYTES) : tag].strip(b" \t"):
        return -1
    return data.find(b"\n", tag) + 1 or -1
