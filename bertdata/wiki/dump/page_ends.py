"""Find the ends of pages in a dump's text, where it may be cut into blocks."""

_CLOSE = b"</page>"
_INDENT_BYTES = 64


class PageEnds:
    """Search for page ends, the positions after ``</page>``. The searches return -1 if there is none."""

    def find_first(self, data: bytes, start: int) -> int:
        """Return the first page end after ``start``."""
        at = data.find(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def find_last(self, data: bytes, start: int) -> int:
        """Return the last page end whose tag starts at ``start`` or later."""
        at = data.rfind(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def find_searched_end(self, data: bytes) -> int:
        """Return where to continue after a search in all the data failed.

        No ``</page>`` starts before this offset, even if more data are appended.
        """
        return max(0, len(data) - len(_CLOSE) + 1)


class LinePageEnds(PageEnds):
    """Search for page ends of MLPerf's extractor, the positions after a line that starts with ``</page>``.

    That extractor looks only at the first tag of each line.
    """

    def find_first(self, data: bytes, start: int) -> int:
        while (at := data.find(_CLOSE, start)) >= 0:
            if (end := _find_line_end(data, at)) >= 0:
                return end
            start = at + 1
        return -1

    def find_last(self, data: bytes, start: int) -> int:
        at = len(data)
        while (at := data.rfind(_CLOSE, start, at)) >= 0:
            if (end := _find_line_end(data, at)) >= 0:
                return end
        return -1

    def find_searched_end(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1


def _find_line_end(data: bytes, tag: int) -> int:
    """Return the end of the line that starts with the tag.

    Returns -1 if the line starts with other text or is incomplete.
    """
    # Only blanks may be between the start of the line and the tag, at most _INDENT_BYTES of them.
    line = data.rfind(b"\n", max(0, tag - _INDENT_BYTES), tag) + 1
    if data[line or max(0, tag - _INDENT_BYTES) : tag].strip(b" \t"):
        return -1
    return data.find(b"\n", tag) + 1 or -1
