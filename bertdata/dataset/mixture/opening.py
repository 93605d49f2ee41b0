"""Opening of the datasets of a mixture one by one, so that the order within a dataset does not depend on the
others.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from bertdata.dataset.mixture.weights import find_weights, split_paths
from bertdata.dataset.reader import OpenedDataset, SourceShare, Split, check_same_layout, open_dataset
from bertdata.errors import DatasetError, SettingsError
from bertdata.io.real_paths import resolve_path


def open_weighted(
    paths: str | Sequence[str], *, unverified: bool = False, split: Split | None = None
) -> OpenedDataset:
    """Open a dataset, or a mixture of datasets with weights, such as ``A*0.7+B*0.3``.

    paths: a list of paths without weights, or a text for ``split_weighted``.
    unverified: as in ``open_dataset``.
    split: as in ``open_dataset``.

    Raises SettingsError if there are weights and ``split`` is "test". Also raises the errors of
    ``make_whole_weights`` and ``open_sources``.
    """
    if not isinstance(paths, str) or not (weights := find_weights(paths)):
        plain = split_paths(paths) if isinstance(paths, str) else paths
        return open_dataset(plain, unverified=unverified, split=split)
    if split == "test":
        raise SettingsError(f"{paths}: data to evaluate on have no weights; give them as A+B")
    return join_sources(open_sources(split_paths(paths), unverified=unverified, split=split), weights)


def open_sources(
    paths: Sequence[str],
    *,
    unverified: bool = False,
    objective: str | None = None,
    split: Split | None = None,
) -> list[OpenedDataset]:
    """Open each dataset by itself. Its shards then have the same names as if it were the only dataset.

    The arguments and errors are those of ``open_dataset``. Raises DatasetError also if two datasets share a
    file.
    """
    given = {"unverified": unverified, "objective": objective, "split": split}
    found = [open_dataset(path, **given) for path in paths]  # type: ignore[arg-type]
    for path, source in zip(paths, found, strict=True):
        check_same_layout(path, source.layout, found[0].layout)
    if not unverified:
        open_dataset(paths, **given)  # type: ignore[arg-type]  # to compare vocabularies
    seen: dict[str, str] = {}
    for path, source in zip(paths, found, strict=True):
        for shard in source.shards:
            if (other := seen.setdefault(resolve_path(shard.path), path)) != path:
                raise DatasetError(f"{shard.path}: belongs to both {other} and {path}; mix different files")
    return found


def join_sources(sources: Sequence[OpenedDataset], weights: Sequence[int]) -> OpenedDataset:
    """Return one dataset with the shards of all sources, source after source.

    weights: an integer for each source.
    """
    return replace(
        sources[0],
        name=", ".join(source.name for source in sources),
        shards=tuple(chain.from_iterable(source.shards for source in sources)),
        left_out=sum(source.left_out for source in sources),
        sources=tuple(
            SourceShare(name=source.name, weight=weight, shards=len(source.shards))
            for source, weight in zip(sources, weights, strict=True)
        ),
    )
