"""Remove text that is enclosed in pairs of marks: calls in braces, tables, elements."""

from collections.abc import Callable

Mark = tuple[int, int]
"""Start and end position of an opening or closing mark."""

Search = Callable[[int], Mark | None]
"""Function that returns the first mark from a position on, or None."""


def cut_enclosed(text: str, opener: Search, closer: Search) -> str:
    """Remove everything from an opening mark to its closing mark, including nested pairs.

    opener, closer: functions that search for the next opening or closing mark.

    If openers and closers do not match, WikiExtractor's counting goes wrong and removes whole paragraphs.
    This function removes the same paragraphs.
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
    # start: opener of the current cut. last: opener read last. close: closer that may end the cut.
    # depth: number of openers between start and close that still need a closer.
    while close is not None:
        following = opener(last[1])
        if following is None:
            # There are no more openers, so the cut ends after one closer for each pair that is still open.
            return [*cuts, (start[0], _close_all(closer, close, depth)[1])]
        last = following
        while close[1] < last[0]:
            # The closer comes before the next opener, as in "{ } {".
            if depth:
                # The closer ends a nested pair, so look for another closer. If there is none, WikiExtractor
                # forgets all cuts and removes everything from the start of the first cut to the last closer.
                depth -= 1
                further = closer(close[1])
                if further is None:
                    return [((cuts[0] if cuts else start)[0], close[1])]
                close = further
            else:
                # The closer ends the outermost pair. The next cut starts at the opener read last.
                cuts.append((start[0], close[1]))
                start, close = last, closer(last[1])
                break
        if last != start:
            depth += 1  # the opener comes before the closer: "{ { }"
    return cuts


def _close_all(closer: Search, close: Mark, depth: int) -> Mark:
    """Skip one closing mark per nested pair.

    Returns the last closing mark that was skipped. There may be fewer marks than pairs.
    """
    for _ in range(depth):
        further = closer(close[1])
        if further is None:
            break
        close = further
    return close


def make_literal_search(text: str, mark: str) -> Search:
    """Make a function that searches the text for a fixed string."""

    def search(begin: int) -> Mark | None:
        found = text.find(mark, begin)
        return None if found < 0 else (found, found + len(mark))

    return search
