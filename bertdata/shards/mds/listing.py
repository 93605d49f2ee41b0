"""Find the shards listed in the MDS indexes of a directory tree."""

from collections.abc import Sequence

from bertdata.errors import ShardError
from bertdata.io import storage
from bertdata.shards.containers import is_shard_name
from bertdata.shards.mds.names import INDEX_NAME, is_mds_name, load_numpy


def list_mds_shards(directory: str, names: Sequence[str]) -> list[str]:
    """Return the shards that the MDS indexes in a directory tree list. Without an index the list is empty.

    An ``index.json`` that belongs to shards of another format is ignored. Raises ShardError for a damaged
    index or a missing shard.

    names: all files in the directory tree.
    """
    indexes = [name for name in names if storage.get_base_name(name) == INDEX_NAME]
    shards = [name for name in names if is_shard_name(name)]
    if not indexes or (shards and not any(map(is_mds_name, shards))):
        return []
    load_numpy()
    from bertdata.shards.mds.index import parse_index

    there, found = set(names), []
    for index in indexes:
        where, folder = storage.join(directory, index), index.removesuffix(INDEX_NAME)
        for entry in parse_index(storage.read_bytes(where), where):
            files = [folder + entry.stored.basename, folder + entry.raw.basename]
            present = [name for name in files if name in there]
            if not present:
                missing = storage.join(directory, files[0])
                raise ShardError(
                    f"{missing}: is missing, {INDEX_NAME} lists it with {entry.samples} samples; "
                    "copy it again"
                )
            found.append(present[0])
    return found
