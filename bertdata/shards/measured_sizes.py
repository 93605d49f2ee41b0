"""Common sizes for files that do not record the sizes of their examples."""

from collections.abc import Iterable

from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


def share_largest_sizes(found: Iterable[tuple[str, ShardLayout, bool]]) -> list[tuple[str, ShardLayout]]:
    """Return each file's path and layout. Files with measured sizes share the largest of each size.

    found: path, layout, and whether the layout is measured (``ShardReader.is_measured``) of each file. Sizes
    are shared among files of the same objective.
    """
    files = list(found)
    measured = [layout for _, layout, is_measured in files if is_measured]
    names = {layout.objective for layout in measured}
    largest = {name: _merge_layouts([one for one in measured if one.objective == name]) for name in names}
    return [
        (path, largest[layout.objective] if is_measured else layout) for path, layout, is_measured in files
    ]


def _merge_layouts(layouts: list[ShardLayout]) -> ShardLayout:
    objective = layouts[0].objective
    sizes = find_objective(objective).batch_type.sizes()
    most = {size: max(layout.size(size) for layout in layouts) for size in sizes}
    return ShardLayout.of_sizes(most, objective=objective)
