"""Keys of the random streams of blocks in files: a pass over the text takes the place of an epoch at load.

So the masks of a block are a function of the seed, the pass, the text and the block's number in it, whatever
else is drawn. The text counts because each part of a corpus has the same seed.
"""

from zlib import crc32

from bertdata.examples.dynamic_masking.counter_stream import shard_key
from bertdata.records import Documents


def pass_keys(documents: Documents, seed: int, passes: int) -> list[int]:
    """The key of each pass's streams, where the CRC-32 of the ids stands for the text."""
    text = f"{crc32(documents.ids):08x}"
    return [shard_key(seed, number, text) for number in range(passes)]
