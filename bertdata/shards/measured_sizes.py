"""Sizes of examples in files that do not tell them: the largest of all files that belong together."""

from collections.abc import Iterable

from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


def with_largest_sizes(found: Iterable[tuple[str, ShardLayout, bool]]) -> list[tuple[str, ShardLayout]]:
    """The layouts of files by path. Each measured one gets the largest sizes of all of its objective.

    found: path, layout, and whether the layout is measured (``ShardReader.is_measured``).
    """
    files = list(found)
    measured = [layout for _, layout, is_measured in files if is_measured]
    names = {layout.objective for layout in measured}
    largest = {name: _largest([one for one in measured if one.objective == name]) for name in names}
    return [
        (path, largest[layout.objective] if is_measured else layout) for path, layout, is_measured in files
    ]


def _largest(layouts: list[ShardLayout]) -> ShardLayout:
    objective = layouts[0].objective
    sizes = find_objective(objective).batch_type.sizes()
    most = {size: max(layout.size(size) for layout in layouts) for size in sizes}
    return ShardLayout.of_sizes(most, objective=objective)
