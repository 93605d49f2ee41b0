"""A dataset as an IterableDataset or a Dataset of Hugging Face's package ``datasets``.

This module imports NumPy. ``datasets`` is imported only when a function is called.
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

from bertdata.dataset.mixture.examples import MixedExamples
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.selection import SelectedExamples
from bertdata.dataset.views.epochs import SharedEpoch
from bertdata.dataset.views.examples import split_numbers
from bertdata.dataset.views.model_rows import make_model_rows
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import ShardLayout


def make_iterable_dataset(data: OpenedDataset, objective: str | None) -> Any:
    """Return an IterableDataset whose rows are padded examples under the names that Hugging Face uses.

    Each file is a shard of the IterableDataset.
    """
    import datasets

    from bertdata.dataset.views.epoch_dataset import EpochDataset

    epoch = SharedEpoch(data)
    shares = {"numbers": _split_into_shares(data), "data": data, "objective": objective, "epoch": epoch}
    view = datasets.IterableDataset.from_generator(
        iterate_rows, features=_make_features(data.layout), gen_kwargs=shares
    )
    return EpochDataset.from_iterable(view, epoch)


def make_map_dataset(data: OpenedDataset, objective: str | None) -> Any:
    """Return a Dataset whose rows are padded examples. The rows are stored in the cache of ``datasets``.

    ``datasets`` finds rows in its cache by a hash of the generator's arguments. The versions of the files are
    among them, so that a file that has changed is read again even if no manifest lists its md5.
    """
    import datasets

    # This is a tuple, because ``datasets`` would divide a list among its workers.
    versions = tuple(storage.read_version(shard.path) for shard in data.shards)
    given = {"data": data, "objective": objective, "versions": versions}
    return datasets.Dataset.from_generator(
        iterate_all_rows, features=_make_features(data.layout), gen_kwargs=given
    )


def iterate_all_rows(
    data: OpenedDataset, objective: str | None, versions: tuple[Any, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all examples.

    versions: versions of the files. They are not used here, but ``datasets`` hashes them for its cache.
    """
    return iterate_rows([range(data.examples)], data, objective)


def _split_into_shares(data: OpenedDataset) -> list[range]:
    """Return one range of example numbers for each shard.

    The examples of a mixture come from several shards in turn, and chosen examples come from any shard. They
    are divided evenly into as many ranges as there are shards.
    """
    if isinstance(data, MixedExamples | SelectedExamples):
        shares = len(data.shards)
        return [split_numbers(data.examples, share, shares) for share in range(shares)]
    ends = [0, *accumulate(shard.examples for shard in data.shards)]
    return [range(start, stop) for start, stop in pairwise(ends)]


def iterate_rows(
    numbers: list[range], data: OpenedDataset, objective: str | None, epoch: SharedEpoch | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the examples with these numbers.

    numbers: ranges of example numbers. ``datasets`` divides this list among its workers.
    """
    if objective is not None:
        find_objective(objective)
    if epoch is not None:
        data = epoch.data()
    for share in numbers:
        for batch in data.read_range(share):
            found = make_model_rows(batch, data.layout)
            for index in range(len(batch)):
                yield {name: values[index] for name, values in found.items()}


def _make_features(layout: ShardLayout) -> Any:
    import datasets

    found = {}
    for name, field in find_objective(layout.objective).model_fields.items():
        value = datasets.Value(field.type)
        width = field.width(layout, 0)
        found[name] = value if field.shape == "1" else datasets.Sequence(value, length=width)
    return datasets.Features(found)
