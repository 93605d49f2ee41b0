"""Summaries of similar warnings, so that a run with many files does not print the same warning many times.

Two warnings are similar if they differ only in the file's name and in numbers. The first is printed at once.
When the run ends, a single line names the files of all the others::

    results/part-00007: 3.1% of 5210 tokens are [UNK], more than 2%: the vocabulary does not suit ...
    results/part-00001, results/part-00002, results/part-00003 and 496 more: as results/part-00007: ...
"""

import re

_NAMED = 3
_NUMBER = re.compile(r"\d[\d.,]*")


class FoldedWarnings:
    """Collector of a run's warnings, each of the form ``NAME: text``, which are grouped by similarity."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = {}

    def is_first(self, warning: str) -> bool:
        """Return True if the warning must be printed, because no similar warning came before.

        Otherwise keep the warning for the summary that ``summarise_others`` returns, and return False.
        """
        # Similar warnings have the same key, which has no name and no numbers. For example, the key of
        # "part-7: 3.1% of 5210 tokens are [UNK], see part-7" is "#% of # tokens are [UNK], see ".
        name, _, text = warning.partition(": ")
        found = self._groups.setdefault(_NUMBER.sub("#", text.replace(name, "")), [])
        found.append(warning)
        return len(found) == 1

    def summarise_others(self) -> list[str]:
        """Return one summary line for each group of similar warnings that were not printed, and clear all
        groups.
        """
        lines = [_fold_warnings(first, others) for first, *others in self._groups.values() if others]
        self._groups.clear()
        return lines


def _fold_warnings(first: str, others: list[str]) -> str:
    """Return one line that sums up the warnings of a group that were not printed.

    The line names the files of these warnings and refers to the first warning. A single warning is returned
    unchanged.

    first: the first warning of the group, which was printed.
    others: the later warnings of the group.
    """
    if len(others) == 1:
        return others[0]
    names = [warning.partition(": ")[0] for warning in others]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}: as {first}"
