"""Removes text that is enclosed in pairs of marks, such as calls in braces, tables, and elements."""

from collections.abc import Callable

Mark = tuple[int, int]
"""Position of an opening or closing mark: its start and its end."""

Search = Callable[[int], Mark | None]
"""Function that returns the position of the first mark from an index on, or None if there is no more mark."""


def remove_enclosed(text: str, opener: Search, closer: Search) -> str:
    """Remove everything from an opening mark to its closing mark.

    Pairs inside other pairs are removed with them.

    opener: function that searches for the next opening mark.
    closer: function that searches for the next closing mark.

    If opening and closing marks do not match, WikiExtractor counts them wrongly and removes whole paragraphs.
    This function removes the same paragraphs.
    """
    kept: list[str] = []
    end = 0
    for begin, behind in _find_parts_to_remove(opener, closer):
        kept.append(text[end:begin])
        end = behind
    return "".join([*kept, text[end:]])


def _find_parts_to_remove(opener: Search, closer: Search) -> list[Mark]:
    """Return the start and end of each part of the text that must be removed."""
    cuts: list[Mark] = []
    start = last = opener(0)
    if start is None or last is None:
        return cuts
    close = closer(start[1])
    depth = 0
    # start: opening mark of the current cut.
    # last: the opening mark that was found last.
    # close: the closing mark that may end the cut.
    # depth: number of opening marks between start and close that still need a closing mark.
    while close is not None:
        following = opener(last[1])
        if following is None:
            # There is no further opening mark. The cut ends when each pair that is still open has a closing
            # mark.
            return [*cuts, (start[0], _skip_inner_closers(closer, close, depth)[1])]
        last = following
        while close[1] < last[0]:
            # The closing mark comes before the next opening mark, as in "{ } {".
            if depth:
                # The closing mark ends an inner pair, so search for the next closing mark. If there is none,
                # WikiExtractor forgets all cuts, and removes everything from the start of the first cut to
                # the last closing mark.
                depth -= 1
                further = closer(close[1])
                if further is None:
                    return [((cuts[0] if cuts else start)[0], close[1])]
                close = further
            else:
                # The closing mark ends the outermost pair. The next cut starts at the opening mark that was
                # found last.
                cuts.append((start[0], close[1]))
                start, close = last, closer(last[1])
                break
        if last != start:
            depth += 1  # The next opening mark comes before the closing mark, as in "{ { }".
    return cuts


def _skip_inner_closers(closer: Search, close: Mark, depth: int) -> Mark:
    """Skip as many closing marks as there are inner pairs that are still open.

    close: the first closing mark.
    depth: number of inner pairs.

    Returns the last closing mark that was skipped. There may be fewer closing marks than pairs.
    """
    for _ in range(depth):
        further = closer(close[1])
        if further is None:
            break
        close = further
    return close


def make_literal_search(text: str, mark: str) -> Search:
    """Make a function that searches the text for a fixed string."""

    def find_mark(begin: int) -> Mark | None:
        """Return the position of the next mark from ``begin`` on, or None."""
        found = text.find(mark, begin)
        return None if found < 0 else (found, found + len(mark))

    return find_mark
