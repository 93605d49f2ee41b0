"""Values as Graphcore's programs read them: booleans, warm-up, precision."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bertdata.errors import UsageError

NORM_EPSILON = 1e-3
"""The number that the programs' layer norms add to the variance, whatever the configuration says."""


def any_text(text: str) -> bool:
    """The value of a flag that the program reads by ``bool``: true for any text but an empty one."""
    return bool(text)


def yes_or_no(text: str) -> bool:
    """The value of a flag that takes the words for true and false; ValueError for another word."""
    word = text.lower()
    if word in ("true", "t", "1", "yes", "y"):
        return True
    if word in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError(text)


def warmup_of(value: Any, per_step: int) -> int | float:
    """The warm-up in updates, or as a share of them; UsageError, in the program's words, for neither.

    per_step: updates of what the program calls a step.
    """
    if not isinstance(value, int | float) or (not 0 <= value < 1 and int(value) != value) or value < 0:
        wanted = "Warmup can be either an integer or a float between 0 and 1"
        raise UsageError(f"{wanted}. The value {value} is not acceptable")
    return int(value) * per_step if int(value) == value else float(value)


def capped(rate: float, warmup: int | float, updates: int, least: float) -> tuple[float, int | float]:
    """(learning rate, warm-up) that give in a run shorter than the warm-up the rates that the program has.

    The program goes up the same slope and stops; here a warm-up must end within the run, so it ends with it,
    at the height of that place. least: the rate of a single update, whose own would be 0.
    """
    if not isinstance(warmup, int) or warmup < updates:
        return rate, warmup
    shorter = updates - 1
    return max(least, rate * shorter / warmup), shorter


def one_or_each(value: Any) -> Any:
    """A list of one value as that value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def said_no(arguments: Sequence[str], names: Sequence[str]) -> list[str]:
    """Warnings for flags of ``any_text`` on the command line that are given a word for false."""
    words = " ".join(arguments).replace("=", " ").split(" ")
    return [
        f"{flag} {value}: the program takes any word as true"
        for flag, value in pairwise(words)
        if flag.removeprefix("--") in names and value.lower() in ("false", "0", "no", "none")
    ]
