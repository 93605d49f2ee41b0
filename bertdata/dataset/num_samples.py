"""LDDL's file of the number of examples of each shard, which its loader needs beside them."""

from collections.abc import Iterable

from bertdata.dataset.manifest import ShardEntry
from bertdata.io.manifest_file import dump_json

NUM_SAMPLES = ".num_samples.json"


def num_samples(shards: Iterable[ShardEntry]) -> bytes:
    """The file's bytes."""
    counts = {shard.name: shard.examples for shard in shards}
    return dump_json({name: counts[name] for name in sorted(counts)})
