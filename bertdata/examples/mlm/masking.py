"""Masks of blocks in files: those that are drawn at load, with a pass over the text in place of an epoch.

So the masks of a block are a function of the seed, the pass, the text and the block's number in it, whatever
else is drawn. The text counts because each part of a corpus has the same seed.
"""

from hashlib import blake2b

from bertdata.examples.dynamic_masking.counter_stream import CounterStream, shard_key
from bertdata.examples.dynamic_masking.reference import draw_masks
from bertdata.examples.dynamic_masking.settings import MaskingRules
from bertdata.examples.masking import Masked
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents


def pass_keys(documents: Documents, settings: MlmSettings) -> list[int]:
    """The key of each pass's streams; 8 bytes of BLAKE2b of the ids stand for the text."""
    text = blake2b(documents.ids, digest_size=8).hexdigest()
    return [shard_key(settings.random_seed, number, text) for number in range(settings.dupe_factor)]


def mask_block(
    original: list[int], settings: MlmSettings, rules: MaskingRules, key: int, number: int
) -> Masked:
    """The block with its masks; number: its place among the blocks of the text."""
    if not settings.masks:
        return Masked(original, [], [])
    return draw_masks(original, settings.masked_lm_prob, rules, CounterStream(key, number))
