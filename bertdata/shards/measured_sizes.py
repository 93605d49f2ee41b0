"""Give a dataset's files common example sizes if the files do not record any.

The reader of such a file measures the sizes, such as the most ids per example. Files of one dataset may then
differ, although a dataset has a single layout.
"""

from collections.abc import Iterable

from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


def share_largest_sizes(found: Iterable[tuple[str, ShardLayout, bool]]) -> list[tuple[str, ShardLayout]]:
    """Give all measured files of an objective a layout with the largest measured sizes.

    found: for each file its path, its layout, and whether the layout's sizes were measured in the file
    (``ShardReader.is_measured``). Returns each file's path and new layout. Other files keep their layout.
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
