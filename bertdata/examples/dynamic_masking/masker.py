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
    """Values that determine the masks of N examples besides their ids: random stream and share of masked ids.

    keys: for each example, the key of its shard and epoch (``counter_stream.derive_shard_key``).
    numbers: for each example, its index in its shard.
    rates: for each example, the share of its ids to mask.
    """

    keys: Array  # uint64 (N,)
    numbers: Array  # uint64 (N,)
    rates: Array  # 64-bit floats, one per example


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DrawnMasks:
    """The masks that were drawn for N examples.

    Row i of ``positions`` and ``labels`` belongs to example i. Its first ``counts[i]`` items are used.

    positions: masked positions, counted from the example's first id.
    labels: the original id at each masked position.
    counts: number of masked positions of each example.
    """

    positions: Array  # int32 of shape (N, P), with zeros after the masked positions of each example
    labels: Array  # int32 of shape (N, P), with zeros after the labels of each example
    counts: Array  # int32 (N,)


class Masker:
    """Object that draws new masks for loaded examples whose ids belong to one vocabulary. It can be pickled.

    first_epoch: the number of the first epoch in a training run, 0 or 1.
    """

    first_epoch = 0

    def __init__(self, rules: MaskingRules, engine: Engine) -> None:
        self._rules, self._engine = rules, engine
        self._kernel = self._make_kernel() if use_native(engine) else None

    def _make_kernel(self) -> Any:
        return kernels.DynamicMasker(**self._rules.make_kernel_arguments())

    def __reduce__(self) -> tuple[type["Masker"], tuple[object, ...]]:
        return Masker, (self._rules, self._engine)

    @property
    def settings(self) -> MaskingSettings:
        return self._rules.settings

    @property
    def counts_vary(self) -> bool:
        """True if the number of masks of an example is drawn at random.

        Otherwise it is computed from the example's length and the share of ids to mask.
        """
        return self.settings.mask_counts == "drawn"

    @property
    def never_masked(self) -> bytes:
        """A byte for each id of the vocabulary, which is 1 if the id is never masked, else 0."""
        return self._rules.never_masked

    @property
    def needs_starts(self) -> bool:
        """True if the examples must store where words start.

        This is so if whole words are masked and the vocabulary does not say which ids continue a word.
        """
        return self._rules.needs_starts

    def streams(self, seed: int, epoch: int, shard: str, before: int, numbers: Array) -> tuple[Array, Array]:
        """Return the random stream of each example of a shard: its key and its number (see ``Draws``), uint64
        (N,) each.

        shard: name of the shard.
        before: number of examples in all earlier shards. This base class does not use it.
        numbers: indices of the examples in the shard, uint64.
        """
        return np.full(len(numbers), derive_shard_key(seed, epoch, shard), np.uint64), numbers

    def mask(
        self, ids: Array, starts: Array, lengths: Array, draws: Draws, word_starts: Array | None = None
    ) -> DrawnMasks:
        """Draw masks for examples and write the masked ids into ``ids``.

        ids: unmasked ids of all examples, int32. Example i is ``ids[starts[i]:starts[i] + lengths[i]]``.
        starts: index of each example's first id, ascending. Examples must not overlap.
        lengths: number of ids of each example.
        draws: random stream of each example and share of its ids to mask.
        word_starts: for each id 1 if a word starts there, else 0. None if the vocabulary says which ids
            continue a word.

        Raises DatasetError if an id is outside the vocabulary.
        """
        words = self._select_word_starts(word_starts)
        positions, labels = np.zeros((2, len(starts), self.settings.max_predictions_per_seq), np.int32)
        masks = DrawnMasks(positions=positions, labels=labels, counts=np.zeros(len(starts), np.int32))
        self._check_ids(ids, starts, lengths)
        if self._kernel is None:
            self._mask_one_by_one(ids, starts, lengths, draws, masks, words)
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

    def _select_word_starts(self, word_starts: Array | None) -> Array | None:
        """Return the word starts as bytes if whole words are masked.

        Otherwise return None, because the masks do not depend on them.
        """
        if not self.settings.whole_word_mask:
            return None
        assert word_starts is not None or not self.needs_starts, "the examples have no word starts"
        return None if word_starts is None else word_starts.astype(np.uint8, copy=False)

    def mask_batch(self, batch: Any, draws: Draws) -> Any:
        """Return the batch with newly drawn masks instead of its own. The batch's class must have masks."""
        # New masks are drawn from the original ids, as if the examples had been stored without masks.
        batch = remove_masks(batch)
        ids, lengths = np.array(batch.ids, np.int32), columns.compute_lengths(batch.ends)
        word_starts = get_word_starts(batch)
        masks = self.mask(ids, np.asarray(batch.ends) - lengths, lengths, draws, word_starts)
        # The drawn masks are rows of equal length P. Join the used part of each row in one array.
        used = np.arange(masks.positions.shape[1]) < masks.counts[:, np.newaxis]
        drawn = Masks(
            masks.positions[used].astype(np.uint16),
            masks.labels[used].astype(np.uint32),
            np.cumsum(masks.counts).astype(np.uint32),
        )
        masked = replace_masks(batch, ids.astype(np.uint32), drawn)
        return replace(masked, **_flatten_columns(type(batch), self.following(masks, lengths)))

    def following(self, masks: DrawnMasks, lengths: Array) -> dict[str, Array]:
        """Return the batch's further columns that depend on the masks, such as the boundaries of masked
        spans.

        This base class returns none. A derived class returns two kinds of arrays, by name of the column. A
        column has the shape (N, P), and only the first items of each row are used. The number of used items
        per example, of shape (N,), has the name of the batch's column of end offsets.

        lengths: number of ids of each example.
        """
        return {}

    def _mask_one_by_one(
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
    """Make a masker for one vocabulary. Raises SettingsError if no masks can be drawn with these settings."""
    check_loading(settings)
    return Masker(prepare_masking_rules(vocabulary, settings), engine or default_engine())


def remove_masks(batch: Any) -> Any:
    """Return the batch without masks, with the original ids put back. The batch's class must have masks."""
    batch = columns.convert_to_arrays(batch)
    # A masked position counts from the start of its example. Add the index of that start to get the index in
    # ``ids``, and write the original id there.
    starts, masks = batch.ends.astype(np.int64) - columns.compute_lengths(batch.ends), get_masks(batch)
    ids = np.array(batch.ids, np.promote_types(batch.ids.dtype, masks.originals.dtype))
    ids[np.repeat(starts, columns.compute_lengths(masks.ends)) + masks.places] = masks.originals
    none = Masks(masks.places[:0], masks.originals[:0], np.zeros(len(batch), np.uint32))
    return replace_masks(batch, ids, none)


def _flatten_columns(batch_type: type[ExampleBatch], found: Mapping[str, Array]) -> dict[str, Array]:
    """Convert columns of shape (N, P) to the form that a batch has, with the items of all examples one after
    another.

    found: arrays by name of the column. The array of a column has the shape (N, P). The array under the name
        of its end offsets has the number of used items of each example.
    """
    made: dict[str, Array] = {}
    for ends, items in batch_type.ragged().items():
        if ends in found:
            made[ends] = np.cumsum(found[ends]).astype(np.uint32)
            for item in items:
                values = found[item.name]
                made[item.name] = values[np.arange(values.shape[1]) < found[ends][:, np.newaxis]]
    return made
