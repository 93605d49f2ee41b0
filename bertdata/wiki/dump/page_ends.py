"""Places where a block of a dump may end: behind a whole page."""

_CLOSE = b"</page>"
_INDENT_BYTES = 64


class PageEnds:
    """Ends of blocks: behind ``</page>``. All answers are -1 where there is none."""

    def first(self, data: bytes, start: int) -> int:
        """The first page end behind ``start``."""
        at = data.find(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def last(self, data: bytes, start: int) -> int:
        """The last page end whose tag begins at ``start`` or later."""
        at = data.rfind(_CLOSE, start)
        return -1 if at < 0 else at + len(_CLOSE)

    def searched(self, data: bytes) -> int:
        """Offset before which no tag of a page end begins, once the whole data were searched in vain."""
        return max(0, len(data) - len(_CLOSE) + 1)


class LinePageEnds(PageEnds):
    """Ends of blocks for MLPerf's reader: behind a line that begins with ``</page>``.

    The reader looks at the first tag of each line only.
    """

    def first(self, data: bytes, start: int) -> int:
        while (at := data.find(_CLOSE, start)) >= 0:
            if (end := _line_end(data, at)) >= 0:
                return end
            start = at + 1
        return -1

    def last(self, data: bytes, start: int) -> int:
        at = len(data)
        while (at := data.rfind(_CLOSE, start, at)) >= 0:
            if (end := _line_end(data, at)) >= 0:
                return end
        return -1

    def searched(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1


def _line_end(data: bytes, tag: int) -> int:
    """The end of the line that begins with the tag, -1 if it does not or the line goes on."""
    line = data.rfind(b"\n", max(0, tag - _INDENT_BYTES), tag) + 1
    if data[line or max(0, tag - _INDENT_BYTES) : tag].strip(b" \t"):
        return -1
    return data.find(b"\n", tag) + 1 or -1
