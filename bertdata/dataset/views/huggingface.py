"""A dataset as an IterableDataset, or a Dataset, of Hugging Face's ``datasets``.

Needs NumPy when it is imported, ``datasets`` when it is called.
"""

from collections.abc import Iterator
from typing import Any

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.views.epochs import SharedEpoch
from bertdata.dataset.views.model_rows import model_rows
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import ShardLayout


def iterable_dataset(data: OpenedDataset, objective: str | None) -> Any:
    """An IterableDataset of padded rows under Hugging Face's names, of as many shards as there are files."""
    import datasets

    from bertdata.dataset.views.epoch_dataset import EpochDataset

    epoch = SharedEpoch(data)
    shares = {"shards": list(data.shards), "data": data, "objective": objective, "epoch": epoch}
    view = datasets.IterableDataset.from_generator(rows, features=_features(data.layout), gen_kwargs=shares)
    return EpochDataset.of(view, epoch)


def map_dataset(data: OpenedDataset, objective: str | None) -> Any:
    """A Dataset of the same rows, in the cache of ``datasets``, which knows them again by the files' md5s.

    versions: of the files, in the place of md5s where no manifest lists them.
    """
    import datasets

    versions = tuple(storage.version(shard.path) for shard in data.shards)  # a list would be shared out
    given = {"data": data, "objective": objective, "versions": versions}
    return datasets.Dataset.from_generator(all_rows, features=_features(data.layout), gen_kwargs=given)


def all_rows(
    data: OpenedDataset, objective: str | None, versions: tuple[Any, ...]
) -> Iterator[dict[str, Any]]:
    """The rows of all shards' examples, one by one."""
    return rows(list(data.shards), data, objective)


def rows(
    shards: list[Shard], data: OpenedDataset, objective: str | None, epoch: SharedEpoch | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of the shards' examples, one by one. ``datasets`` hands each worker some of the list."""
    if objective is not None:
        find_objective(objective)
    if epoch is not None:
        data = epoch.data()
    for shard in shards:
        for batch in data.batches(shard):
            found = model_rows(batch, data.layout)
            for index in range(len(batch)):
                yield {name: values[index] for name, values in found.items()}


def _features(layout: ShardLayout) -> Any:
    import datasets

    found = {}
    for name, field in find_objective(layout.objective).model_fields.items():
        value = datasets.Value(field.type)
        width = field.width(layout, 0)
        found[name] = value if field.shape == "1" else datasets.Sequence(value, length=width)
    return datasets.Features(found)
