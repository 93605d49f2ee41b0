"""Masks of blocks in files: those that are drawn at load, with a pass over the text in place of an epoch.

So the masks of a block are a function of the seed, the pass, the text and the block's number in it, whatever
else is drawn. The text counts because each part of a corpus has the same seed.
"""

from zlib import crc32

from bertdata.examples.dynamic_masking.counter_stream import CounterStream, shard_key
from bertdata.examples.masking.reference import Masked, Starts, mask_at_load
from bertdata.examples.masking.rules import MaskingRules
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents


def pass_keys(documents: Documents, settings: MlmSettings) -> list[int]:
    """The key of each pass's streams, where the CRC-32 of the ids stands for the text."""
    text = f"{crc32(documents.ids):08x}"
    return [shard_key(settings.random_seed, number, text) for number in range(settings.dupe_factor)]


def mask_block(
    original: list[int],
    settings: MlmSettings,
    rules: MaskingRules,
    key: int,
    number: int,
    starts: Starts = None,
) -> Masked:
    """The block with its masks. number: its place in the text, starts: as of words_of."""
    if not settings.masks:
        return Masked(original, [], [])
    return mask_at_load(original, settings.masked_lm_prob, rules, CounterStream(key, number), starts)
