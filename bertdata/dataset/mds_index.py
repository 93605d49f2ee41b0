"""``index.json`` of a dataset whose shards are MDS: what Mosaic's loader reads first."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.manifest import ShardEntry
from bertdata.io import storage
from bertdata.shards.mds.names import load_numpy

if TYPE_CHECKING:
    from bertdata.shards.mds.index import ShardForm


def mds_index(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> bytes:
    """The index's bytes. Of hashed or compressed shards the files are read anew.

    A shard without examples, as a part without text has, is left out: loaders expect some in each.
    """
    load_numpy()
    from bertdata.shards.mds.directory import describe_shard
    from bertdata.shards.mds.index import IndexEntry, StoredFile, dump_index

    form = form_of(settings)
    used = sorted((shard for shard in shards if shard.examples), key=lambda shard: shard.name)
    if form.hashes or form.compression:
        paths = {storage.join(directory, shard.name): shard for shard in used}
        entries = storage.each(list(paths), lambda path: describe_shard(path, form, paths[path].examples))
    else:
        entries = [
            IndexEntry(
                form=form,
                samples=shard.examples,
                raw=StoredFile(basename=shard.name, bytes=shard.bytes, hashes={}),
            )
            for shard in used
        ]
    return dump_index(entries)


def form_of(settings: DatasetSettings) -> "ShardForm":
    """The form of the shards, as wide as the vocabulary needs."""
    from bertdata.shards.mds.ids import id_form

    container, vocabulary = settings.container, settings.vocabulary
    return id_form(
        wide=vocabulary.get("size", vocabulary["tokens"]) > 1 << 16,
        with_len=container.get("len", False),
        compression=container.get("compression"),
        hashes=tuple(container.get("hashes", ())),
        size_limit=container.get("size_limit"),
    )
