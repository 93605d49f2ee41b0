"""Sizes of a dataset's rows: tokens, masked slots, examples."""

import math
from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array, lengths
from bertdata.records import ShardLayout
from bertdata.shards.packed.layouts import LAYOUTS
from trainer.data.at_load import MaskedAtLoad, Packing

_EXAMPLES = 4096
_LENGTHS = 1 << 17
_DEVIATIONS = 8  # from the mean number of drawn masks: never seen
_SHARDS = 16


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExampleSizes:
    """Sizes of a sample of examples, or of packed rows.

    masks_per_token: masked slots of all over tokens of all.
    deviation: how far the masks of an example, or row, are from that share of its tokens, as a standard
    deviation.
    mask_rate: an example of n tokens has up to mask_rate * n masked slots, rounded to the nearest.
    """

    lengths: Array  # tokens of each example, or row
    masks_per_token: float
    deviation: float
    mask_rate: float = 1.0


def sample_sizes(data: OpenedDataset) -> ExampleSizes:
    """The sizes of a sample of the dataset's examples, the same on every worker.

    Tokens are those of shards spread over the dataset where it has lengths, else, as masks always, those of
    the first examples, decoded.
    """
    tokens, masks = _first_examples(data)
    found = example_sizes(tokens, masks)
    return replace(found, lengths=_spread_lengths(data)) if data.has_lengths else found


def sample_row_sizes(data: OpenedDataset, packing: Packing | None = None) -> ExampleSizes:
    """The sizes of a sample of the rows of the training: examples, packed rows, or rows packed at load."""
    if data.layout.packing is not None:
        tokens, masks = _first_examples(data)
        rows = _first_rows(data, len(tokens))
        return replace(
            example_sizes(np.bincount(rows, tokens), np.bincount(rows, masks)),
            mask_rate=example_sizes(tokens, masks).mask_rate,
        )
    found = sample_sizes(data)
    if packing is None:
        return found
    rows = packing.rows_of(found.lengths, data.layout.max_seq_length)
    each = len(rows) / (rows.max() + 1)
    return replace(
        found, lengths=np.bincount(rows, found.lengths), deviation=found.deviation * math.sqrt(each)
    )


def examples_per_row(data: OpenedDataset, packing: Packing | None = None) -> float:
    """The examples of a row on average; of rows packed at load, those of a sample."""
    if data.layout.packing is not None:
        return data.examples / sum(shard.rows or 0 for shard in data.shards)
    if packing is None:
        return 1.0
    rows = packing.rows_of(sample_sizes(data).lengths, data.layout.max_seq_length)
    return len(rows) / int(rows.max() + 1)


def mask_slots(data: OpenedDataset, layout: ShardLayout, sizes: ExampleSizes) -> int:
    """The masked slots of a packed row: those of its layout where it says so, else what the rate allows.

    Masks that are drawn at load need not fit into the layout's.
    """
    known = LAYOUTS.get(layout.packing or "")
    room = known.mask_room(layout) if known and not isinstance(data, MaskedAtLoad) else None
    if room is not None:
        return room
    if not sizes.masks_per_token:
        return 0
    mean = sizes.mask_rate * layout.max_seq_length
    by_rate = math.ceil(mean + layout.sequences_per_row / 2) + 1
    if isinstance(data, MaskedAtLoad) and data.mask_counts_vary:
        by_rate += math.ceil(_DEVIATIONS * math.sqrt(mean))
    return min(layout.sequences_per_row * layout.max_predictions_per_seq, by_rate)


def _first_examples(data: OpenedDataset) -> tuple[Array, Array]:
    """Tokens and masked slots of the first examples, decoded."""
    if isinstance(data, MaskedAtLoad):
        data = data.sample()
    tokens, masks, seen = list[Array](), list[Array](), 0
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        tokens.append(lengths(batch.ends))
        masks.append(lengths(batch.mask_ends) if isinstance(batch, BertBatch) else np.zeros(len(batch)))
        seen += len(batch)
        if seen >= _EXAMPLES:
            break
    return np.concatenate(tokens), np.concatenate(masks)


def _first_rows(data: OpenedDataset, examples: int) -> Array:
    """The packed row of each of the first examples."""
    sizes, seen = list[Array](), 0
    for packs in (packs for shard in data.shards for packs in data.packs(shard)):
        sizes.append(lengths(packs.ends))
        seen += int(packs.ends[-1]) if len(packs) else 0
        if seen >= examples:
            break
    counts = np.concatenate(sizes)
    return np.repeat(np.arange(len(counts)), counts)[:examples]


def _spread_lengths(data: OpenedDataset) -> Array:
    """The tokens of examples of a few shards, each an equal way behind the one before."""
    used = [shard for shard in data.shards if shard.examples]
    chosen = used[:: -(-len(used) // _SHARDS)]
    each = -(-_LENGTHS // len(chosen))
    return np.concatenate([np.asarray(data.lengths(shard)[:each]) for shard in chosen])


def example_sizes(tokens: Array, masks: Array) -> ExampleSizes:
    """The sizes of examples with so many tokens and masked slots each."""
    share = masks.sum() / tokens.sum()
    return ExampleSizes(
        lengths=tokens,
        masks_per_token=float(share),
        deviation=float(np.sqrt(np.mean((masks - share * tokens) ** 2))),
        mask_rate=float(np.max((masks - 0.5) / tokens)),
    )
