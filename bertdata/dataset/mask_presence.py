"""Detection of datasets whose examples have no masks, although a masked language model needs them.

Without masks the model would learn nothing. NumPy is imported only when examples are read.
"""

from collections.abc import Sequence

from bertdata.dataset.masked_data import MaskedData
from bertdata.dataset.mixture.examples import MixedExamples
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.selection import SelectedExamples
from bertdata.examples.groups import MASKS, count_masks, has_group
from bertdata.examples.objectives import find_objective
from bertdata.io import storage


def find_unmasked_directories(data: OpenedDataset) -> list[str]:
    """Return the directories whose examples have no masks although their objective predicts masked words.

    A dataset for which masks are drawn while it is read counts as having masks. If no manifest records the
    number of masks, the first examples are read to see whether they have any.
    """
    if isinstance(data, MaskedData) or not has_group(find_objective(data.layout.objective).batch_type, MASKS):
        return []
    if isinstance(data, SelectedExamples):
        return find_unmasked_directories(data.source)
    if isinstance(data, MixedExamples):
        return [name for part in data.parts for name in find_unmasked_directories(part)]
    directories: dict[str, list[Shard]] = {}
    for shard in data.shards:
        if shard.examples:
            directories.setdefault(storage.get_parent(shard.path), []).append(shard)
    return [name for name, shards in directories.items() if not _has_masks(data, shards)]


def _has_masks(data: OpenedDataset, shards: Sequence[Shard]) -> bool:
    listed = [shard.masked_tokens for shard in shards if shard.masked_tokens is not None]
    if listed:
        return sum(listed) > 0
    return count_masks(next(iter(data.batches(shards[0])))) > 0
