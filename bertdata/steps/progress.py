"""Progress of a step, as its callback receives it."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from bertdata.io.notebook import NotebookBar, is_in_notebook


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


GivenProgress = OnProgress | Literal[False] | None
"""The argument ``progress`` of a step: a callback, None for a bar in a notebook, False for none anywhere."""


def choose_progress(given: GivenProgress) -> OnProgress:
    """Return the callback for a step whose caller has given this argument ``progress``.

    If the caller has given none, the step shows a bar in a notebook, and nothing in another program.
    """
    if callable(given):
        return given
    if given is None and is_in_notebook():
        return NotebookStepProgress()
    return ignore_progress


class NotebookStepProgress:
    """Callback that shows a step's progress as a bar in a notebook, with the warnings below the bar."""

    def __init__(self) -> None:
        self._bar = NotebookBar()

    def __call__(self, now: StepProgress) -> None:
        """Show a report."""
        for warning in now.warnings:
            self._bar.add_line(f"warning: {warning}")
        shards = f", {now.shards} of {now.all_shards} shards" if now.all_shards else ""
        text = f"{now.stage}: {now.done:,} of {now.total:,} {now.unit}{shards}"
        self._bar.show(now.done / now.total if now.total else None, text, at_once=now.done >= now.total)


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
