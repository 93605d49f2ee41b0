"""The dataset at a path that is to be described in another format."""

from bertdata.dataset.discover import find_datasets
from bertdata.dataset.manifest import Manifest
from bertdata.errors import DatasetError


def find_described_dataset(path: str) -> tuple[str, Manifest]:
    """Return the directory and the manifest of the only dataset at a path.

    Raises DatasetError if there is no manifest, or if there are several datasets.
    """
    found = find_datasets(path, exact=True)
    if len(found) > 1:
        inner = ", ".join(dataset.path for dataset in found)
        raise DatasetError(f"{path}: holds {len(found)} datasets; name one of them: {inner}")
    [dataset] = found
    if dataset.manifest is None:
        raise DatasetError(f"{path}: has no manifest of a dataset, which a description is made from")
    return dataset.path, dataset.manifest
