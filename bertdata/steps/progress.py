"""Progress of a step, as its callback receives it."""

from collections.abc import Callable
from typing import NamedTuple


class StepProgress(NamedTuple):
    """Progress of a step: how much of the current stage is done.

    done: amount that is done, in the stage's unit. A new stage begins with 0.
    total: amount of the whole stage.
    finished: description of the shard or file that has just been finished. Empty if there is none.
    shards: number of shards created or kept so far, out of ``all_shards``.
    tokens: number of tokens in the shards created so far.
    warnings: warnings since the last call.
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
"""Callback that a step calls now and then, in the thread that runs the step."""


def ignore_progress(progress: StepProgress) -> None:
    """Do nothing. This is the default of a step's ``progress`` callback."""


def add_warnings_first(warnings: tuple[str, ...], progress: OnProgress) -> OnProgress:
    """Return a callback that passes the progress on, and adds the warnings to the first progress."""
    waiting = list(warnings)

    def pass_on(now: StepProgress) -> None:
        first = tuple(waiting)
        waiting.clear()
        progress(now._replace(warnings=(*first, *now.warnings)))

    return pass_on
