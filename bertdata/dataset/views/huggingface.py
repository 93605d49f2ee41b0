"""A dataset as an IterableDataset of Hugging Face's ``datasets``. The shards stay where they are.

Needs NumPy when it is imported, ``datasets`` when it is called.
"""

from collections.abc import Iterator
from typing import Any

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.views.model_rows import model_rows
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


def iterable_dataset(data: OpenedDataset, objective: str | None) -> Any:
    """An IterableDataset of padded rows under Hugging Face's names, of as many shards as there are files."""
    import datasets

    shares = {"shards": list(data.shards), "data": data, "objective": objective}
    return datasets.IterableDataset.from_generator(rows, features=_features(data.layout), gen_kwargs=shares)


def rows(shards: list[Shard], data: OpenedDataset, objective: str | None) -> Iterator[dict[str, Any]]:
    """The rows of the shards' examples, one by one. ``datasets`` hands each worker some of the list."""
    if objective is not None:
        find_objective(objective)
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
