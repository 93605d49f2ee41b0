"""Random examples, with which speed and memory can be measured without a dataset."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.groups import (
    MASKS,
    PAIR_LABEL,
    PAIRS,
    SEGMENT,
    find_column,
    find_mask_names,
    has_group,
)
from bertdata.examples.objectives import find_objective
from bertdata.records import DEFAULT_OBJECTIVE, ExampleBatch, ShardLayout
from trainer.config.model_kinds import find_config_class
from trainer.config.settings import Config
from trainer.data.order import draw_numbers

_SHORTEST = 1 / 16  # length of the shortest example, as a fraction of max_seq_length
_LEAST_FULL = 0.1  # smallest fraction of examples that have the full length
_LEAST_FILL = 0.2
_MASKED = 0.15
_UNMASKED = 2  # ids of an example that are never masked


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedData(OpenedDataset):
    """A dataset of random examples, which follow from the seed, ``fill`` and the shard's name.

    fill: average length of an example, divided by max_seq_length. If it is 1, all examples have the full
    length and the largest number of masked words. If it is below 1, some examples have the full length and
    others any length, as in real datasets, and 15 % of the tokens are masked.
    """

    seed: int
    fill: float

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield the shard's examples as NumPy columns."""
        assert self.vocabulary_size is not None
        size = np.uint64(self.vocabulary_size)
        rows, ids, masks = shard.examples, self.layout.max_seq_length, self.layout.max_predictions_per_seq
        drawn = draw_numbers(rows * (ids + 2 * masks + 2), self.seed, shard.name)
        tokens, labels, jumps, rest = np.split(drawn, np.cumsum([rows * ids, rows * masks, rows * masks]))
        lengths, slots = self._sizes(shard)
        used = np.arange(ids) < lengths[:, np.newaxis]
        in_use = np.arange(masks) < slots[:, np.newaxis]
        stride = ((lengths - 2) // slots).astype(np.uint64)[:, np.newaxis]
        places = (
            np.arange(masks, dtype=np.uint64) * stride + np.uint64(1) + jumps.reshape(rows, masks) % stride
        )
        objective = self.layout.objective
        kind = find_objective(objective).batch_type
        if unknown := [group.name for group in kind.groups() if group not in PAIRS]:
            raise SettingsError(
                f"objective {objective}: generated data have no {unknown[0]}; train on a dataset"
            )
        made = {
            "ids": tokens.reshape(rows, ids)[used] % size,
            "ends": np.cumsum(lengths).astype(np.uint32),
        }
        if has_group(kind, MASKS):
            drawn_masks = (
                places[in_use].astype(np.uint16),
                labels.reshape(rows, masks)[in_use] % size,
                np.cumsum(slots).astype(np.uint32),
            )
            made |= dict(zip(find_mask_names(kind), drawn_masks, strict=True))
        if has_group(kind, SEGMENT):
            first = 1 + rest[:rows] % (lengths - 1).astype(np.uint64)
            made[find_column(kind, SEGMENT).name] = first.astype(np.uint32)
        if has_group(kind, PAIR_LABEL):
            made[find_column(kind, PAIR_LABEL).name] = (rest[rows:] % np.uint64(2)).astype(np.uint8)
        yield columns.shrink_ids(kind(**made))

    @property
    def has_lengths(self) -> bool:
        """True if examples have different lengths, so that micro-batches can be balanced by length. If all
        examples have the same length, lengths count as missing.
        """
        return self.fill < 1

    def lengths(self, shard: Shard) -> Array:
        """Return the number of tokens of each of the shard's examples."""
        return self._sizes(shard)[0]

    def _sizes(self, shard: Shard) -> tuple[Array, Array]:
        """Return the number of tokens and the number of masked words of each of the shard's examples."""
        longest, masks = self.layout.max_seq_length, self.layout.max_predictions_per_seq
        if self.fill == 1:
            return np.full(shard.examples, longest), np.full(shard.examples, masks)
        drawn = draw_numbers(2 * shard.examples, self.seed, shard.name, "lengths") / 2.0**64
        which, place = np.split(drawn, 2)
        # The average length, as a fraction, is full + (1 - full) * others. Here full is the fraction of full
        # examples, and others is the average length of the other examples, which is at least _SHORTEST.
        full = max(_LEAST_FULL, (self.fill - (1 + _SHORTEST) / 2) / (1 - (1 + _SHORTEST) / 2))
        others = (self.fill - full) / (1 - full)  # average length of the other examples
        fractions = np.where(which < full, 1, _SHORTEST + 2 * place * (others - _SHORTEST))
        lengths = np.maximum((fractions * longest).round().astype(np.int64), 3)
        return lengths, np.clip((_MASKED * lengths).round().astype(np.int64), 1, masks)


def make_configured_data(config: Config) -> OpenedDataset:
    """Return a dataset of random examples with the configured objective and sizes."""
    if masking := config.masking_at_load:
        raise SettingsError(f"masking {masking} needs a dataset: generated examples have no vocabulary")
    keys = config.data
    length = keys.max_seq_length or 128
    # 20 masks are the default for 128 ids, also for shorter sequences that have room for 20. Others have the
    # usual share of masks.
    usual = 20 if length - _UNMASKED >= 20 else max(1, round(_MASKED * length))
    layout = ShardLayout(
        max_seq_length=length,
        max_predictions_per_seq=keys.max_predictions_per_seq or usual,
        objective=keys.objective or DEFAULT_OBJECTIVE,
    )
    model = config.model_settings
    vocabulary_size = model.get("vocab_size") or find_config_class(model)().vocab_size
    return generate_data(layout, vocabulary_size=vocabulary_size, seed=keys.seed)


def generate_data(
    layout: ShardLayout,
    *,
    vocabulary_size: int,
    seed: int = 0,
    files: int = 8,
    examples: int = 4096,
    fill: float = 1.0,
) -> OpenedDataset:
    """Return a dataset of random examples. The examples are generated when they are read.

    vocabulary_size: number of different token ids.
    files: number of shards.
    examples: number of examples in a shard.
    fill: average length of an example, divided by max_seq_length.
    """
    masks, ids = layout.max_predictions_per_seq, layout.max_seq_length
    if not 0 < masks <= ids - _UNMASKED:
        raise SettingsError(
            f"max_predictions_per_seq is {masks}, expected 1 to max_seq_length - 2 ({ids - _UNMASKED})"
        )
    if not _LEAST_FILL <= fill <= 1:
        raise SettingsError(f"fill is {fill:g}, expected {_LEAST_FILL:g} to 1")
    names = (f"generated-{number}" for number in range(files))
    shards = tuple(Shard(name=name, path="", examples=examples) for name in names)
    return GeneratedData(
        name="generated data",
        layout=layout,
        shards=shards,
        vocabulary_size=vocabulary_size,
        seed=seed,
        fill=fill,
    )
