"""Folding of similar warnings: the first is printed at once, and one line at the end stands for the rest.

Two warnings are similar if they differ only in the file's name and in numbers. The output is::

    results/part-00007: 3.1% of 5210 tokens are [UNK], more than 2%: the vocabulary does not suit ...
    results/part-00001, results/part-00002, results/part-00003 and 496 more: as results/part-00007: ...
"""

import re

_NAMED = 3
_NUMBER = re.compile(r"\d[\d.,]*")


class FoldedWarnings:
    """Collector of a run's warnings, each of the form ``NAME: text``, grouped by similarity."""

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}

    def is_first(self, warning: str) -> bool:
        """Return True if no similar warning came before.

        Otherwise keep the warning for ``rest`` and return False.
        """
        # "part-7: 3.1% of 5210 tokens are [UNK], see part-7" -> "#% of # tokens are [UNK], see "
        name, _, text = warning.partition(": ")
        found = self._kinds.setdefault(_NUMBER.sub("#", text.replace(name, "")), [])
        found.append(warning)
        return len(found) == 1

    def rest(self) -> list[str]:
        """Return the lines about the kept warnings, one for each group of similar warnings, and clear all
        groups.
        """
        lines = [_fold_warnings(first, others) for first, *others in self._kinds.values() if others]
        self._kinds.clear()
        return lines


def _fold_warnings(first: str, others: list[str]) -> str:
    """Return one line about all later warnings of a group of similar warnings.

    first: the group's first warning, which was printed.
    others: the later warnings. If there is only one, it is returned unchanged. For several warnings, the line
        names their files and refers to the first warning.
    """
    if len(others) == 1:
        return others[0]
    names = [warning.partition(": ")[0] for warning in others]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}: as {first}"
