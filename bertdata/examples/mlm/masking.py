"""Masks of blocks in files: those that are drawn at load, from a stream of each block."""

from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.masking.reference import Masked, Starts, mask_at_load
from bertdata.examples.masking.rules import MaskingRules
from bertdata.examples.mlm.settings import MlmSettings


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
