"""A dataset whose masks are drawn when its examples are read.

Needs NumPy when it is imported.
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
    """The examples of ``source`` with the masks of one epoch and rate. Those that they have do not count."""

    source: OpenedDataset
    masker: Masker
    seed: int
    epoch: int
    rate: float

    @property
    def has_lengths(self) -> bool:
        return self.source.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """The tokens of each of the shard's examples."""
        return self.source.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples, masked."""
        first = 0
        for batch in self.source.batches(shard):
            yield self._masked(batch, shard, first)
            first += len(batch)

    @property
    def stored(self) -> OpenedDataset:
        """The examples with the masks that they have."""
        return self.source.stored

    def altered(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        """The stored examples, masked."""
        return self._masked(self.source.altered(batch, shard, first), shard, first)

    def at_epoch(self, epoch: int) -> "MaskedData":
        """The same examples with the masks of another epoch, counted from 0."""
        return replace(self, source=self.source.at_epoch(epoch), epoch=epoch + self.masker.first_epoch)

    def _masked(self, batch: ExampleBatch, shard: Shard, first: int) -> ExampleBatch:
        before = self.source.examples_before[self.shards.index(shard)]
        of_shard = np.arange(first, first + len(batch), dtype=np.uint64)
        keys, numbers = self.masker.streams(self.seed, self.epoch, shard.name, before, of_shard)
        draws = Draws(keys=keys, numbers=numbers, rates=np.full(len(batch), self.rate))
        masked: ExampleBatch = columns.compact(self.masker.mask_batch(batch, draws))
        return masked


def masked_data(
    source: OpenedDataset, masker: Masker, *, seed: int, epoch: int | None = None, rate: float | None = None
) -> MaskedData:
    """The dataset with masks of one epoch, by default the first. rate: the masker's by default.

    SettingsError for an epoch before the first one of another program's masks.
    """
    if epoch is None:
        epoch = masker.first_epoch
    elif epoch < masker.first_epoch and masker.first_epoch:  # dynamic masks have an epoch of any number
        raise SettingsError(f"epoch is {epoch}, expected {masker.first_epoch} or more")
    return MaskedData(
        name=source.name,
        layout=masked_layout(source, masker),
        shards=source.shards,
        vocabulary_size=source.vocabulary_size,
        left_out=source.left_out,
        sources=source.sources,
        source=source,
        masker=masker,
        seed=seed,
        epoch=epoch,
        rate=masker.settings.masked_lm_prob if rate is None else rate,
    )


def masker_of(
    source: OpenedDataset,
    dataset: FoundDataset,
    vocabulary: Vocabulary,
    settings: MaskingSettings,
    masking: str = MASKINGS[0],
) -> Masker:
    """The masker of a dataset's examples, by its objective and the settings in its manifest.

    dataset: the source as it was found, or a part of it. max_predictions_per_seq 0 stands for the dataset's
    (at a rate above the dataset's: for as many as that asks of a full example), or for as many masks as
    another program draws. masking: one of MASKINGS. SettingsError where no masks can be drawn.
    """
    if masking not in MASKINGS:
        raise SettingsError(f"masking is {masking!r}, expected one of {', '.join(MASKINGS)}")
    if masking != MASKINGS[0]:
        from bertdata.examples.fairseq.load_masker import make_fairseq_masker

        return make_fairseq_masker(vocabulary, settings, source.layout, masking)
    of_data = dataset.manifest.plan.settings.objective if dataset.manifest else {}
    most = settings.max_predictions_per_seq or _limit(source.layout, of_data, settings.masked_lm_prob)
    settings = replace(settings, max_predictions_per_seq=most)
    return find_objective(source.layout.objective).masker(vocabulary, settings, of_data)


def _limit(layout: ShardLayout, of_data: Mapping[str, Any], rate: float) -> int:
    """Most masks of an example, where nobody gave it. of_data: the objective's settings in the manifest."""
    limit = layout.max_predictions_per_seq
    made_for = of_data.get("masked_lm_prob", MaskingSettings().masked_lm_prob)
    return max(limit, round(layout.max_seq_length * rate)) if rate > made_for else limit


def masked_layout(source: OpenedDataset, masker: Masker) -> ShardLayout:
    """The dataset's layout with room for the masks.

    SettingsError as from check_masks, and where nothing tells the whole words that the masker takes.
    """
    check_masks(source)
    if masker.needs_starts and not has_group(find_objective(source.layout.objective).batch_type, WORD_STARTS):
        raise SettingsError(
            f"{source.name}: holds no word starts, and its tokeniser's ids do not tell whole words; make the "
            "shards with bertdata create --no-masks, which keeps them"
        )
    return replace(source.layout, max_predictions_per_seq=masker.settings.max_predictions_per_seq)


def check_masks(source: OpenedDataset) -> None:
    """SettingsError for a dataset whose masks cannot be drawn anew."""
    name = source.layout.objective
    if not has_group(find_objective(name).batch_type, MASKS):
        raise SettingsError(f"{source.name}: the examples of the objective {name} have no masked words")
    if source.layout.remask:
        raise SettingsError(f"{source.name}: is in Graphcore's remasked order, whose masks are fixed")
