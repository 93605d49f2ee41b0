"""Computes the content md5 of a shard, which is the md5 of its examples as TFRecords in canonical form.

The same examples have the same content md5 in any container and from any program. Packed rows have the
content md5 of their examples, in the order of the rows.
"""

import hashlib
from typing import BinaryIO

from bertdata._native import Engine
from bertdata.io import storage
from bertdata.shards.containers import make_reader, recognise_container
from bertdata.shards.packed.layouts import make_pack_reader
from bertdata.shards.packed.packs import unpack_layout
from bertdata.shards.tfrecord import encode_batch, read_canonical_blocks

_BATCH = 512


def compute_content_md5(path: str, engine: Engine | None = None, objective: str | None = None) -> str:
    """Return the content md5 of a shard. Raises ShardError, which names the record that cannot be read.

    objective: name of the examples' objective, or None to recognise it from the file.
    """
    digest = hashlib.md5(usedforsecurity=False)
    with storage.open_input(path) as file:
        if is_plain_tfrecord(file, path):
            for block, _ in read_canonical_blocks(file, path, engine):
                digest.update(block)
        else:
            reader = make_reader(file, path, engine, objective)
            layout = unpack_layout(reader.layout)
            for batch in reader.batches(_BATCH):
                digest.update(encode_batch(batch, layout, engine))
    return digest.hexdigest()


def count_readable_examples(path: str, engine: Engine | None = None, objective: str | None = None) -> int:
    """Read every record of a shard, and return the number of examples if all can be read.

    Raises ShardError, which names the first damaged record.
    """
    with storage.open_input(path) as file:
        if is_plain_tfrecord(file, path):
            return sum(records for _, records in read_canonical_blocks(file, path, engine))
        return sum(map(len, make_reader(file, path, engine, objective).batches(_BATCH)))


def is_plain_tfrecord(file: BinaryIO, name: str) -> bool:
    """Return True if a file is a TFRecord whose records are single examples, not packed rows.

    The file is rewound.
    """
    container = recognise_container(file, name)
    return container.is_canonical and make_pack_reader(file, name, container.name) is None
