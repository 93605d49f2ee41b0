"""Datasets whose masks are drawn when examples are loaded, and the masks of gathered examples."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bertdata.dataset.discover import find_datasets
from bertdata.dataset.masked_data import MaskedData, masked_data, masked_layout
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import SettingsError
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.counter_stream import shard_key
from bertdata.examples.dynamic_masking.masker import Draws, Masker, make_masker, unmask
from bertdata.records import Buffer, ExampleBatch, Vocabulary
from bertdata.shards.packed.packs import PackBatch
from trainer.config.data import split_paths
from trainer.config.settings import Config
from trainer.data.dealing import OwnRows
from trainer.data.examples import GatheredExamples, Piece
from trainer.extensions.loading.mask_rate import MaskRate


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Masking:
    """The drawing of masks: rules, seed and rate."""

    masker: Masker
    seed: int
    rate: MaskRate


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmaskedData(OpenedDataset):
    """A dataset to train on: its own masks are taken off, others are drawn for each epoch by the loader.

    layout: that of the masks to draw.
    """

    source: OpenedDataset
    masking: Masking

    @property
    def has_lengths(self) -> bool:
        return self.source.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """The tokens of each of the shard's examples."""
        return self.source.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples without masks."""
        for batch in self.source.batches(shard):
            assert isinstance(batch, BertBatch)
            yield unmask(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """The shard's packed rows, their examples without masks."""
        for packs in self.source.packs(shard):
            assert isinstance(packs.examples, BertBatch)
            yield replace(packs, examples=unmask(packs.examples))


def mask_at_load(config: Config, data: OpenedDataset) -> UnmaskedData:
    """The opened training data with masks to be drawn by the loader."""
    source = data.source if isinstance(data, MaskedData) else data
    return unmasked_data(source, make_masking(config, source, str(config.data.train_data)))


def mask_once(config: Config, data: OpenedDataset, paths: str) -> MaskedData:
    """The dataset at the paths, whose examples have no masks, with masks that are the same in each epoch."""
    masking = make_masking(config, data, paths)
    return masked_data(data, masking.masker, seed=masking.seed)


def make_masking(config: Config, data: OpenedDataset, paths: str) -> Masking:
    """The configured dynamic masks of a dataset. SettingsError where its vocabulary is not at hand."""
    most = config.data.max_predictions_per_seq or data.layout.max_predictions_per_seq
    settings = config.masking.settings(most)
    return Masking(
        masker=make_masker(_vocabulary(config, data, paths), settings),
        seed=config.data.seed,
        rate=MaskRate.of(config.masking, config.schedule.steps),
    )


def _vocabulary(config: Config, data: OpenedDataset, paths: str) -> Vocabulary:
    """The given vocabulary, else the copy beside the data."""
    dataset = find_datasets(split_paths(paths)[0])[0]
    vocabulary = known_vocabulary(config.masking.vocab, dataset)
    if vocabulary is None:
        raise SettingsError(
            f"{data.name}: masking dynamic needs its vocabulary, which is not beside the data; give --vocab"
        )
    return vocabulary


def unmasked_data(source: OpenedDataset, masking: Masking) -> UnmaskedData:
    """The dataset with masks to be drawn by the loader."""
    return UnmaskedData(
        name=source.name,
        layout=masked_layout(source, masking.masker),
        shards=source.shards,
        vocabulary_size=source.vocabulary_size,
        left_out=source.left_out,
        source=source,
        masking=masking,
    )


def masks_of(data: OpenedDataset) -> "DynamicMasks | None":
    """The masks to draw for a dataset, None for one that keeps those it has."""
    return DynamicMasks(data) if isinstance(data, UnmaskedData) else None


class DynamicMasks:
    """The masks of the examples that a worker gathers."""

    def __init__(self, data: UnmaskedData) -> None:
        self._source, self._masking = data.source, data.masking
        self._names = [shard.name for shard in data.shards]

    @property
    def counts_vary(self) -> bool:
        return self._masking.masker.settings.mask_counts == "drawn"

    def sample(self) -> MaskedData:
        """The same examples with as many masks as the largest rate draws."""
        masking = self._masking
        return masked_data(self._source, masking.masker, seed=masking.seed, rate=masking.rate.largest)

    def draw(
        self, gathered: GatheredExamples, own: OwnRows, pieces: list[Piece], update: int
    ) -> GatheredExamples:
        """The gathered examples with masks. Their ids are changed in place."""
        keys, numbers = np.empty((2, len(gathered)), np.uint64)
        for part, (_, taken, places) in zip(own.parts, pieces, strict=True):
            keys[places] = shard_key(self._masking.seed, part.epoch, self._names[part.file])
            numbers[places] = taken
        starts = np.arange(len(gathered), dtype=np.int64) * gathered.ids.shape[1]
        draws = Draws(keys=keys, numbers=numbers, rates=self._rates(gathered, len(own.positions), update))
        made = self._masking.masker.mask(gathered.ids.reshape(-1), starts, gathered.lengths, draws)
        return replace(gathered, positions=made.positions, labels=made.labels, masks=made.counts)

    def _rates(self, gathered: GatheredExamples, updates: int, first: int) -> Array:
        """The rate of each example, that of its row's update. first: number of the first update."""
        rates = [self._masking.rate.at(first + number) for number in range(updates)]
        sizes = np.diff(gathered.row_ends, prepend=0)
        found: Array = np.repeat(np.repeat(np.array(rates), gathered.rows // updates), sizes)
        return found
