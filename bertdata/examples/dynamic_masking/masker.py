"""Masks many examples at once when they are loaded, with the C++ kernel or its pure-Python twin.

Needs NumPy when it is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import DatasetError
from bertdata.examples import columns
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.counter_stream import CounterStream, derive_shard_key
from bertdata.examples.groups import Masks, get_masks, get_word_starts, replace_masks
from bertdata.examples.masking.prepared_settings import MaskingRules, prepare_masking_rules
from bertdata.examples.masking.reference import Masked, Starts, mask_at_load
from bertdata.examples.masking.settings import MaskingSettings, check_loading
from bertdata.records import ExampleBatch, Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Draws:
    """Arguments of the masks of N examples, apart from their ids.

    keys: key of each example's shard and epoch (``counter_stream.derive_shard_key``).
    numbers: index of each example in its shard.
    rates: share of each example's ids to mask.
    """

    keys: Array  # uint64 (N,)
    numbers: Array  # uint64 (N,)
    rates: Array  # float64 (N,)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DrawnMasks:
    """The masks of N examples. Example i has ``counts[i]`` masked positions, counted from its first id.

    labels: the original id at each masked position.
    """

    positions: Array  # int32 (N, P), zeros after the example's masked positions
    labels: Array  # int32 (N, P), zeros after the example's labels
    counts: Array  # int32 (N,)


class Masker:
    """Object that draws new masks for examples with the ids of one vocabulary. It can be pickled.

    first_epoch: number of a training run's first epoch.
    """

    first_epoch = 0

    def __init__(self, rules: MaskingRules, engine: Engine) -> None:
        self._rules, self._engine = rules, engine
        self._kernel = self._make_kernel() if use_native(engine) else None

    def _make_kernel(self) -> Any:
        return kernels.DynamicMasker(**self._rules.for_kernel())

    def __reduce__(self) -> tuple[type["Masker"], tuple[object, ...]]:
        return Masker, (self._rules, self._engine)

    @property
    def settings(self) -> MaskingSettings:
        return self._rules.settings

    @property
    def counts_vary(self) -> bool:
        """True if the number of an example's masks is random, not a function of its length and the rate."""
        return self.settings.mask_counts == "drawn"

    @property
    def never_masked(self) -> bytes:
        """One byte per id: 1 if the id is never masked, else 0."""
        return self._rules.never_masked

    @property
    def needs_starts(self) -> bool:
        """True if the examples must include word starts.

        Masking whole words needs them if the vocabulary does not say which ids continue a word.
        """
        return self._rules.needs_starts

    def streams(self, seed: int, epoch: int, shard: str, before: int, numbers: Array) -> tuple[Array, Array]:
        """Return the keys and numbers (see Draws) of a shard's examples, uint64 (N,) each.

        shard: name of the shard.
        before: number of examples in all earlier shards. Only derived classes use this number.
        numbers: indices of the examples in the shard, uint64.
        """
        return np.full(len(numbers), derive_shard_key(seed, epoch, shard), np.uint64), numbers

    def mask(
        self, ids: Array, starts: Array, lengths: Array, draws: Draws, word_starts: Array | None = None
    ) -> DrawnMasks:
        """Mask examples in place.

        Example i is ``ids[starts[i]:starts[i] + lengths[i]]``. Examples do not overlap and starts ascend.
        ids: int32, unmasked.
        word_starts: 1 for each id where a word starts, else 0. None if the vocabulary says which ids continue
        a word. DatasetError if an id is outside the vocabulary.
        """
        words = self._needed_word_starts(word_starts)
        positions, labels = np.zeros((2, len(starts), self.settings.max_predictions_per_seq), np.int32)
        masks = DrawnMasks(positions=positions, labels=labels, counts=np.zeros(len(starts), np.int32))
        self._check_ids(ids, starts, lengths)
        if self._kernel is None:
            self._mask_each(ids, starts, lengths, draws, masks, words)
            return masks
        self._kernel.mask(
            ids=ids,
            starts=starts.astype(np.int64, copy=False),
            lengths=lengths.astype(np.int32, copy=False),
            positions=positions.reshape(-1),
            labels=labels.reshape(-1),
            counts=masks.counts,
            keys=draws.keys,
            numbers=draws.numbers,
            rates=draws.rates,
            word_starts=words,
        )
        return masks

    def _needed_word_starts(self, word_starts: Array | None) -> Array | None:
        """Return the word starts as bytes if the masks depend on them, else None."""
        if not self.settings.whole_word_mask:
            return None
        assert word_starts is not None or not self.needs_starts, "the examples have no word starts"
        return None if word_starts is None else word_starts.astype(np.uint8, copy=False)

    def mask_batch(self, batch: Any, draws: Draws) -> Any:
        """Replace the batch's masks by new ones. The batch's type must have masks."""
        # New masks are drawn from the original ids, as if the examples had been stored without masks.
        batch = remove_masks(batch)
        ids, lengths = np.array(batch.ids, np.int32), columns.compute_lengths(batch.ends)
        word_starts = get_word_starts(batch)
        masks = self.mask(ids, np.asarray(batch.ends) - lengths, lengths, draws, word_starts)
        # The drawn masks have a fixed width P. Keep only the used part of each row, joined in one array.
        used = np.arange(masks.positions.shape[1]) < masks.counts[:, np.newaxis]
        drawn = Masks(
            masks.positions[used].astype(np.uint16),
            masks.labels[used].astype(np.uint32),
            np.cumsum(masks.counts).astype(np.uint32),
        )
        masked = replace_masks(batch, ids.astype(np.uint32), drawn)
        return replace(masked, **_flatten_columns(type(batch), self.following(masks, lengths)))

    def following(self, masks: DrawnMasks, lengths: Array) -> dict[str, Array]:
        """Return further columns that depend on the masks. This base class returns none.

        A derived class can return, for example, the boundaries of masked spans. Each column has shape (N, P),
        of which only the first items of each row are used. An array of shape (N,) with the number of used
        items of each example is returned under the name of the batch's column of end offsets.
        lengths: number of ids of each example.
        """
        return {}

    def _mask_each(
        self,
        ids: Array,
        starts: Array,
        lengths: Array,
        draws: Draws,
        masks: DrawnMasks,
        word_starts: Array | None,
    ) -> None:
        """Mask the examples one by one in pure Python."""
        for index, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            part = slice(start, start + length)
            words = None if word_starts is None else word_starts[part].tolist()
            key, number, rate = int(draws.keys[index]), int(draws.numbers[index]), float(draws.rates[index])
            made = self._mask_one(ids[part].tolist(), rate, key, number, words)
            ids[part] = made.ids
            masks.counts[index] = len(made.positions)
            masks.positions[index, : len(made.positions)] = made.positions
            masks.labels[index, : len(made.positions)] = made.labels

    def _mask_one(self, ids: list[int], rate: float, key: int, number: int, words: Starts) -> Masked:
        """Mask one example in pure Python."""
        return mask_at_load(ids, rate, self._rules, CounterStream(key, number), words)

    def _check_ids(self, ids: Array, starts: Array, lengths: Array) -> None:
        """Raise DatasetError if an id is outside the vocabulary."""
        size = len(self._rules.never_masked)
        largest = int(ids.max(initial=0))
        if largest >= size:
            raise DatasetError(f"id {largest}, expected less than {size}, the size of the vocabulary")


def make_masker(vocabulary: Vocabulary, settings: MaskingSettings, engine: Engine | None = None) -> Masker:
    """Make a masker for one vocabulary. SettingsError if no masks can be drawn with these settings."""
    check_loading(settings)
    return Masker(prepare_masking_rules(vocabulary, settings), engine or default_engine())


def remove_masks(batch: Any) -> Any:
    """Remove the masks: put the original ids back. The batch's type must have masks."""
    batch = columns.convert_to_arrays(batch)
    # Masked positions count from the example's start. Repeat the start for each of its masks to get indices
    # in ids, and write the original ids there.
    starts, masks = batch.ends.astype(np.int64) - columns.compute_lengths(batch.ends), get_masks(batch)
    ids = np.array(batch.ids, np.promote_types(batch.ids.dtype, masks.originals.dtype))
    ids[np.repeat(starts, columns.compute_lengths(masks.ends)) + masks.places] = masks.originals
    none = Masks(masks.places[:0], masks.originals[:0], np.zeros(len(batch), np.uint32))
    return replace_masks(batch, ids, none)


def _flatten_columns(batch_type: type[ExampleBatch], found: Mapping[str, Array]) -> dict[str, Array]:
    """Convert columns of shape (N, P) to the flat columns of a batch.

    found: the columns by name, and under the name of their end offsets the number of items of each example.
    """
    made: dict[str, Array] = {}
    for ends, items in batch_type.ragged().items():
        if ends in found:
            made[ends] = np.cumsum(found[ends]).astype(np.uint32)
            for item in items:
                values = found[item.name]
                made[item.name] = values[np.arange(values.shape[1]) < found[ends][:, np.newaxis]]
    return made
