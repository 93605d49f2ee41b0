"""Give all files of a dataset the same example sizes, if the files do not record any.

The reader of such a file measures the sizes, such as the most ids per example. They may differ from file to
file, but a dataset has a single layout.
"""

from collections.abc import Iterable

from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


def share_largest_sizes(found: Iterable[tuple[str, ShardLayout, bool]]) -> list[tuple[str, ShardLayout]]:
    """Return each file's path and its layout, in which measured example sizes are the same for all files.

    An example size is a limit such as the most ids per example. The new sizes are the largest sizes that were
    measured in any file of the same objective. A file that records its sizes keeps its own layout.

    found: for each file its path, its layout, and whether the sizes were measured in the file
        (``ShardReader.is_measured``).
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
