"""Removal of what a pair of marks encloses: braces, tables, elements."""

from collections.abc import Callable

Mark = tuple[int, int]
"""Begin and end of an opener or closer."""

Search = Callable[[int], Mark | None]
"""The first mark of a kind from that place on."""


def cut_enclosed(text: str, opener: Search, closer: Search) -> str:
    """The text without what lies between an opener and its closer, nested pairs included.

    Where the pairs do not match, the original's count goes astray, and takes paragraphs along; so does this.
    """
    kept: list[str] = []
    end = 0
    for begin, behind in _find_cuts(opener, closer):
        kept.append(text[end:begin])
        end = behind
    return "".join([*kept, text[end:]])


def _find_cuts(opener: Search, closer: Search) -> list[Mark]:
    cuts: list[Mark] = []
    start = last = opener(0)
    if start is None or last is None:
        return cuts
    close = closer(start[1])
    depth = 0
    while close is not None:
        following = opener(last[1])
        if following is None:
            return [*cuts, (start[0], _close_all(closer, close, depth)[1])]
        last = following
        while close[1] < last[0]:
            if depth:
                depth -= 1
                further = closer(close[1])
                if further is None:
                    return [((cuts[0] if cuts else start)[0], close[1])]
                close = further
            else:
                cuts.append((start[0], close[1]))
                start, close = last, closer(last[1])
                break
        if last != start:
            depth += 1
    return cuts


def _close_all(closer: Search, close: Mark, depth: int) -> Mark:
    """Pass over one closer for each of ``depth`` nested pairs. Returns the last one, or the last there is."""
    for _ in range(depth):
        further = closer(close[1])
        if further is None:
            break
        close = further
    return close


def literal(text: str, mark: str) -> Search:
    """A search for that very string."""

    def search(begin: int) -> Mark | None:
        found = text.find(mark, begin)
        return None if found < 0 else (found, found + len(mark))

    return search
