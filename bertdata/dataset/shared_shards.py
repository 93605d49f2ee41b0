"""Detection of evaluation data that is also in the training data.

Files are compared, not paths. For example, a directory ``e``, the path ``./e``, a link to ``e`` and a copy of
``e`` are the same data.
"""

from collections import defaultdict
from functools import cache

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.real_paths import resolve_path


def count_shared_shards(training: OpenedDataset, held_out: OpenedDataset) -> int:
    """Return how many shards of the evaluation data are also in the training data.

    A shard is in both if it is the same file, or a file with the same bytes.
    """
    paths = {resolve_path(shard.path) for shard in training.shards}
    listed = {shard.md5 for shard in training.shards if shard.md5 is not None}
    by_size = _group_shards_by_size(training, held_out)
    md5_of = cache(compute_file_md5)

    def is_shared(shard: Shard) -> bool:
        if resolve_path(shard.path) in paths or shard.md5 in listed:
            return True
        alike = by_size[storage.read_size(shard.path)] if by_size else []
        return any((one.md5 or md5_of(one.path)) == (shard.md5 or md5_of(shard.path)) for one in alike)

    return sum(map(is_shared, held_out.shards))


def make_shared_warnings(training: OpenedDataset, held_out: OpenedDataset) -> list[str]:
    """Return a warning if evaluation data is also in the training data. Otherwise return an empty list."""
    if training.shards and held_out.shards and (found := count_shared_shards(training, held_out)):
        return [
            format_shared_warning(
                held_out.name, training.name, f"{found} of its {len(held_out.shards)} files are"
            )
        ]
    return []


def format_shared_warning(held_out: str, training: str, what: str) -> str:
    """Return the text of the warning.

    what: beginning of the sentence, such as "2 of its 5 files are".
    """
    return (
        f"{held_out}: {what} training data ({training}) too, so what is measured on it tells what was "
        "learned by heart; evaluate on data that were held out"
    )


def _group_shards_by_size(training: OpenedDataset, held_out: OpenedDataset) -> defaultdict[int, list[Shard]]:
    """Return the training shards by their size in bytes.

    The result is empty if manifests list the md5s of all shards, because sizes are then not needed. The md5
    of a file without a manifest is only known after the whole file is read. Files of different sizes cannot
    be equal, so most files need not be read.
    """
    found: defaultdict[int, list[Shard]] = defaultdict(list)
    if any(shard.md5 is None for shard in (*training.shards, *held_out.shards)):
        for shard in training.shards:
            found[storage.read_size(shard.path)].append(shard)
    return found
