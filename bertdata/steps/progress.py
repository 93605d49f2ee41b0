"""Progress of a step, as its callback is told of it."""

from collections.abc import Callable
from typing import NamedTuple


class StepProgress(NamedTuple):
    """Work done so far: ``done`` of ``total`` units in the stage. A new stage begins with ``done`` 0.

    finished: the piece that was just finished, in words, empty where there is none; shards, tokens: made
    or found so far, and made, of ``all_shards``; warnings: new ones.
    """

    stage: str
    done: int
    total: int
    unit: str = "bytes"
    finished: str = ""
    shards: int = 0
    all_shards: int = 0
    tokens: int = 0
    warnings: tuple[str, ...] = ()


OnProgress = Callable[[StepProgress], None]
"""Called now and then while a step runs, by the thread that runs it."""


def silent(progress: StepProgress) -> None:
    """Tell nobody."""


def telling_first(warnings: tuple[str, ...], progress: OnProgress) -> OnProgress:
    """The callback with these warnings added to the first thing that it is told."""
    waiting = list(warnings)

    def tell(now: StepProgress) -> None:
        first = tuple(waiting)
        waiting.clear()
        progress(now._replace(warnings=(*first, *now.warnings)))

    return tell
