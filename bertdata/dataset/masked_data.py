"""Dynamic masking: the masks of examples are drawn while a dataset is read.

This module imports NumPy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertdata.dataset.discover import FoundDataset
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.dynamic_masking.masker import Draws, Masker
from bertdata.examples.groups import MASKS, WORD_STARTS, has_group
from bertdata.examples.masking.settings import MASKINGS, MaskingSettings
from bertdata.examples.objectives import find_objective
from bertdata.records import Buffer, ExampleBatch, ShardLayout, Vocabulary


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedData(OpenedDataset):
    """The examples of a dataset with newly drawn masks. Masks that are stored in the examples are not used.

    source: the dataset.
    masker: object that draws the masks.
    seed: random seed. The masks of an example depend only on the seed, the epoch and the example's number.
    epoch: the epoch whose masks are drawn.
    rate: share of tokens to mask.
    """

    source: OpenedDataset
    masker: Masker
    seed: int
    epoch: int
    rate: float

    @property
    def has_lengths(self) -> bool:
        return self.source.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """Return the number of tokens of each example in the shard."""
        return self.source.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield the shard's examples with drawn masks."""
        first = 0
        for batch in self.source.batches(shard):
            yield self._mask(batch, shard, first)
            first += len(batch)

    @property
    def stored(self) -> OpenedDataset:
        """The dataset with the masks that are stored in its files."""
        return self.source.stored

    def alter_batch(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """Return the examples of a batch with newly drawn masks.

        first: number of the batch's first example in its shard.
        """
        return self._mask(self.source.alter_batch(batch, shard, first), shard, first)

    def with_batches_of(self, rows: int) -> "MaskedData":
        """Return the dataset with batches of another size. An example has the same masks in any batch."""
        return replace(self, source=self.source.with_batches_of(rows), batch_rows=rows)

    def at_epoch(self, epoch: int) -> "MaskedData":
        """Return the same examples with the masks of another epoch. Epochs are counted from 0."""
        return replace(self, source=self.source.at_epoch(epoch), epoch=epoch + self.masker.first_epoch)

    def _mask(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """Draw masks for a batch of the shard.

        first: number of the batch's first example in the shard.
        """
        # ``shard`` may be a copy that says which version of its file was checked, so only the name and the
        # path are compared.
        place = shard.name, shard.path
        number = next(i for i, one in enumerate(self.shards) if (one.name, one.path) == place)
        before = self.source.examples_before[number]
        of_shard = np.arange(first, first + len(batch), dtype=np.uint64)
        keys, numbers = self.masker.streams(self.seed, self.epoch, shard.name, before, of_shard)
        draws = Draws(keys=keys, numbers=numbers, rates=np.full(len(batch), self.rate))
        masked: ExampleBatch = columns.shrink_ids(self.masker.mask_batch(batch, draws))
        return masked


def mask_dataset(
    source: OpenedDataset, masker: Masker, *, seed: int, epoch: int | None = None, rate: float | None = None
) -> MaskedData:
    """Return the dataset with newly drawn masks.

    epoch: the epoch whose masks are drawn. None means the first epoch.
    rate: share of tokens to mask. None means the share that the masker uses by default.

    Raises SettingsError for epoch 0 if the masks are those of a program that counts epochs from 1.
    """
    if epoch is None:
        epoch = masker.first_epoch
    # bertdata's own masks have first_epoch 0 and accept every epoch
    elif epoch < masker.first_epoch and masker.first_epoch:
        raise SettingsError(f"epoch is {epoch}, expected {masker.first_epoch} or more")
    return MaskedData(
        name=source.name,
        layout=make_masked_layout(source, masker),
        shards=source.shards,
        vocabulary_size=source.vocabulary_size,
        left_out=source.left_out,
        sources=source.sources,
        copies=source.copies,
        source=source,
        masker=masker,
        seed=seed,
        epoch=epoch,
        rate=masker.settings.masked_lm_prob if rate is None else rate,
    )


def make_masker(
    source: OpenedDataset,
    dataset: FoundDataset,
    vocabulary: Vocabulary,
    settings: MaskingSettings,
    masking: str = MASKINGS[0],
) -> Masker:
    """Return the object that draws masks for the examples of a dataset.

    source: the dataset, opened for reading.
    dataset: the same dataset as ``find_datasets`` returns it. Its manifest is needed.
    settings: settings of masking. If max_predictions_per_seq is 0, the dataset's limit is used. If the rate
        is higher than the dataset's rate, the limit is raised to the number of masks that the rate gives in a
        full example.
    masking: a name in MASKINGS, which selects bertdata's own masks or the masks of another program.

    Raises SettingsError if masks cannot be drawn.
    """
    if masking not in MASKINGS:
        raise SettingsError(f"masking is {masking!r}, expected one of {', '.join(MASKINGS)}")
    if masking != MASKINGS[0]:
        from bertdata.examples.fairseq.load_masker import make_fairseq_masker

        return make_fairseq_masker(vocabulary, settings, source.layout, masking)
    of_data = dataset.manifest.plan.settings.objective if dataset.manifest else {}
    most = settings.max_predictions_per_seq or _find_max_masks(
        source.layout, of_data, settings.masked_lm_prob
    )
    settings = replace(settings, max_predictions_per_seq=most)
    return find_objective(source.layout.objective).masker(vocabulary, settings, of_data)


def _find_max_masks(layout: ShardLayout, of_data: Mapping[str, Any], rate: float) -> int:
    """Return the largest number of masks in an example, for a user who set no limit.

    of_data: settings of the objective in the dataset's manifest.
    rate: share of tokens to mask.
    """
    limit = layout.max_predictions_per_seq
    made_for = of_data.get("masked_lm_prob", MaskingSettings().masked_lm_prob)
    return max(limit, round(layout.max_seq_length * rate)) if rate > made_for else limit


def make_masked_layout(source: OpenedDataset, masker: Masker) -> ShardLayout:
    """Return the layout of the dataset with room for as many masks as the masker draws.

    Raises SettingsError if masks cannot be drawn for the dataset. This is also the case if whole words are to
    be masked and the shards do not say where words start.
    """
    check_masks(source)
    if masker.needs_starts and not has_group(find_objective(source.layout.objective).batch_type, WORD_STARTS):
        raise SettingsError(
            f"{source.name}: holds no word starts, and its tokeniser's ids do not tell whole words; make the "
            "shards with bertdata create --no-masks, which keeps them"
        )
    return replace(source.layout, max_predictions_per_seq=masker.settings.max_predictions_per_seq)


def check_masks(source: OpenedDataset) -> None:
    """Raise SettingsError if masks cannot be drawn for this dataset."""
    name = source.layout.objective
    if not has_group(find_objective(name).batch_type, MASKS):
        raise SettingsError(f"{source.name}: the examples of the objective {name} have no masked words")
    if source.layout.remask:
        raise SettingsError(f"{source.name}: is in Graphcore's remasked order, whose masks are fixed")
