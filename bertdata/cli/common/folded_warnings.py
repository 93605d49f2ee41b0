"""Warnings folded by kind: the first of each kind at once, one line about the others at the end.

::

    results/part-00007: 3.1% of 5210 tokens are [UNK], more than 2%: the vocabulary does not suit ...
    results/part-00001, results/part-00002, results/part-00003 and 496 more: as results/part-00007: ...
"""

import re

_NAMED = 3
_NUMBER = re.compile(r"\d[\d.,]*")


class FoldedWarnings:
    """The warnings of a run, "NAME: text". Those that differ in name and numbers alone are of one kind."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}

    def is_first(self, warning: str) -> bool:
        """True for the first warning of its kind. The others are kept for ``rest``."""
        name, _, text = warning.partition(": ")
        found = self._kinds.setdefault(_NUMBER.sub("#", text.replace(name, "")), [])
        found.append(warning)
        return len(found) == 1

    def rest(self) -> list[str]:
        """A line about the others of each kind. They are forgotten."""
        lines = [_folded(first, others) for first, *others in self._kinds.values() if others]
        self._kinds.clear()
        return lines


def _folded(first: str, others: list[str]) -> str:
    """The one other warning as it is. The names of several, and what the first one says."""
    if len(others) == 1:
        return others[0]
    names = [warning.partition(": ")[0] for warning in others]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}: as {first}"
