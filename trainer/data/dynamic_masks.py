"""Masks that the loader draws while it loads examples, so that each epoch has other masks."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.masked_data import MaskedData, make_masker, mask_dataset
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import Draws, Masker, remove_masks
from bertdata.examples.groups import WORD_STARTS, find_column, has_group
from bertdata.examples.masking.settings import MASKINGS
from bertdata.examples.objectives import find_objective
from bertdata.records import Buffer, ExampleBatch, Vocabulary
from bertdata.shards.packed.packs import PackBatch
from trainer.config.sections.masking import MaskingSection
from trainer.config.settings import Config
from trainer.data.examples import GatheredExamples, NumberedExamples, Rows
from trainer.data.order import WorkerRows

# Number of decimals to which a rate that changes is rounded, because machines may differ in the cosine's last
# digits.
_DECIMALS = 6


class MaskRate(NamedTuple):
    """The masking rate, which may change during training.

    keys: the configuration's keys about masking.
    updates: number of all updates of the training.
    """

    keys: MaskingSection
    updates: int

    @property
    def largest(self) -> float:
        """The largest masking rate of all updates."""
        return max(self.keys.masked_lm_prob, self.keys.masked_lm_prob_end or 0)

    def at(self, update: int) -> float:
        """Return the masking rate of an update. Updates are counted from 0.

        For updates after the planned number, the rate is that of the last planned update.
        """
        start, end = self.keys.masked_lm_prob, self.keys.masked_lm_prob_end
        if end is None:
            return start
        way = min(update / max(self.updates - 1, 1), 1)
        if self.keys.masked_lm_prob_schedule == "cosine":
            way = (1 - math.cos(math.pi * way)) / 2
        # the rate changes at equal distances and is constant in between
        elif self.keys.masked_lm_prob_schedule == "steps":
            last = self.keys.masked_lm_prob_steps - 1
            way = min(update * (last + 1) // self.updates, last) / last
        return round(start + (end - start) * way, _DECIMALS)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmaskedData(OpenedDataset):
    """A training dataset without masks. The loader draws other masks for its examples in each epoch.

    layout: numbers of the dataset. Its number of masked positions is enough for the masks that are drawn.
    masked: the same examples with masks, drawn at the largest rate. The sizes of batches are estimated from
    them.
    """

    masked: MaskedData
    rate: MaskRate

    @property
    def has_lengths(self) -> bool:
        """True if the dataset has a file with the lengths of its examples."""
        return self.masked.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """Return the number of tokens of each of the shard's examples."""
        return self.masked.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield the shard's examples without masks."""
        for batch in self.masked.source.batches(shard):
            yield remove_masks(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """Yield the shard's packed rows, with examples without masks."""
        for packs in self.masked.source.packs(shard):
            yield replace(packs, examples=remove_masks(packs.examples))

    def with_batches_of(self, rows: int) -> "UnmaskedData":
        """Return the dataset with batches of another size."""
        return replace(self, masked=self.masked.with_batches_of(rows), batch_rows=rows)

    @property
    def row_source(self) -> OpenedDataset | None:
        """The dataset from whose files single examples can be decoded, or None."""
        return self.masked.source.row_source

    def alter_rows(self, batch: ExampleBatch) -> ExampleBatch:
        """Return examples of ``row_source`` without masks."""
        altered: ExampleBatch = remove_masks(self.masked.source.alter_rows(batch))
        return altered

    @property
    def counts_vary(self) -> bool:
        """True if examples of equal length may have different numbers of masked words."""
        return self.masked.masker.counts_vary

    def draw(
        self, gathered: GatheredExamples, own: WorkerRows, numbered: list[NumberedExamples], update: int
    ) -> GatheredExamples:
        """Draw masks for gathered examples. Return the examples with masks. Their ids are changed in place.

        own: the rows of this worker from which the examples come.
        numbered: the numbers of the same examples in their files, for each part of ``own``.
        update: number of the first update to which the rows belong.
        """
        masker, before = self.masked.masker, self.examples_before
        # Each example has its own stream of random numbers, found from seed, epoch, shard and place in the
        # shard. So its masks do not depend on the number of workers, and are the same after a resume.
        keys, numbers = np.empty((2, len(gathered)), np.uint64)
        for part, (of_file, places) in zip(own.parts, numbered, strict=True):
            keys[places], numbers[places] = masker.streams(
                self.masked.seed,
                part.epoch + masker.first_epoch,
                self.shards[part.file].name,
                before[part.file],
                of_file.astype(np.uint64),
            )
        starts = np.arange(len(gathered), dtype=np.int64) * gathered.ids.shape[1]
        draws = Draws(
            keys=keys, numbers=numbers, rates=self._find_rates(gathered, len(own.positions), update)
        )
        words, token_targets = self._find_word_starts(gathered)
        made = masker.mask(gathered.ids.reshape(-1), starts, gathered.lengths, draws, words)
        return replace(
            gathered,
            positions=made.positions,
            labels=made.labels,
            masks=made.counts,
            targets=gathered.targets | masker.following(made, gathered.lengths),
            token_targets=token_targets,
        )

    def _find_word_starts(self, gathered: GatheredExamples) -> tuple[Array | None, dict[str, Array]]:
        """Find the column that says where words start. Return it as a flat array, and the task's other
        columns.

        The first value is None for a dataset without such a column.
        """
        objective = find_objective(self.layout.objective)
        if not has_group(objective.batch_type, WORD_STARTS):
            return None, gathered.token_targets
        name, targets = find_column(objective.batch_type, WORD_STARTS).name, dict(gathered.token_targets)
        words = targets.pop(name) if WORD_STARTS in objective.unlearned else targets[name]
        return words.reshape(-1), targets

    def _find_rates(self, gathered: GatheredExamples, updates: int, first: int) -> Array:
        """Return the masking rate for each example. It is the rate of the update to which the example's row
        belongs.

        updates: number of updates to which the gathered examples belong.
        first: number of the first of these updates.
        """
        rates = [self.rate.at(first + number) for number in range(updates)]
        sizes = np.diff(gathered.row_ends, prepend=0)
        return np.repeat(np.repeat(np.array(rates), gathered.rows // updates), sizes)


def mask_at_load(config: Config, data: OpenedDataset) -> UnmaskedData:
    """Return the opened training data in a form without masks, for which the loader draws masks in each
    epoch.
    """
    source = remove_drawn_masks(config, data)
    rate = MaskRate(config.masking, config.schedule.steps)
    masker = _make_masker(config, source, str(config.data.train_data), rate.largest)
    masked = mask_dataset(source, masker, seed=config.data.seed, rate=rate.largest)
    own: dict[str, Any] = {item.name: getattr(masked, item.name) for item in fields(OpenedDataset)}
    own["never_masked"] = masker.never_masked
    return UnmaskedData(**own, masked=masked, rate=rate)


def mask_once(config: Config, data: OpenedDataset, paths: str, held_out: bool) -> MaskedData:
    """Draw masks for a dataset that has none. They are the same in each epoch. Return the masked dataset.

    paths: paths of the dataset, from which its vocabulary is read.
    held_out: True for evaluation data, which may have another masking rate.
    """
    keys = config.masking
    rate = (held_out and keys.eval_masked_lm_prob) or keys.masked_lm_prob
    masker = _make_masker(config, data, paths, rate)
    return mask_dataset(data, masker, seed=config.data.seed, rate=rate)


def remove_drawn_masks(config: Config, data: OpenedDataset) -> OpenedDataset:
    """Return the opened training data without the masks that were drawn when the data were opened.

    Data with stored masks are returned unchanged.
    """
    return data.source if isinstance(data, MaskedData) else data


def _make_masker(config: Config, data: OpenedDataset, paths: str, rate: float) -> Masker:
    """Return the object that draws masks for a dataset.

    paths: paths of the dataset, from which its vocabulary is read.
    rate: largest masking rate.
    """
    keys = config.masking
    # Data without stored masks are masked once when they are opened, unless masks are drawn while loading.
    # The first entry of MASKINGS says how.
    masking = keys.masking if keys.is_dynamic else MASKINGS[0]
    dataset, vocabulary = find_vocabulary(config, data, paths, masking)
    settings = replace(keys.settings(config.data.max_predictions_per_seq or 0), masked_lm_prob=rate)
    return make_masker(data, dataset, vocabulary, settings, masking)


def find_vocabulary(
    config: Config, data: OpenedDataset, paths: str, masking: str
) -> tuple[FoundDataset, Vocabulary]:
    """Return the dataset at the first path, and its vocabulary.

    The vocabulary is the configured one, or without it the copy that is stored with the dataset.
    SettingsError if there is neither.
    masking: name of the masking that needs the vocabulary, for the message.
    """
    dataset = find_datasets(split_paths(paths)[0])[0]
    vocabulary = load_dataset_vocabulary(config.masking.vocab, dataset)
    if vocabulary is None:
        raise SettingsError(
            f"{data.name}: masking {masking} needs its vocabulary, which is not beside the data; give --vocab"
        )
    return dataset, vocabulary


def make_masked_rows(config: Config, data: OpenedDataset) -> Rows:
    """Return the rows that are trained on. If the dataset has no masks, the rows draw masks while they are
    loaded.
    """
    return Rows(data, data if isinstance(data, UnmaskedData) else None)


class MaskingAtLoad(NamedTuple):
    """The functions that prepare data for a way of masking while loading. The flag ``--masking`` chooses the
    way.

    source: function that returns the opened training data without masks.
    rows: function that returns the rows that are trained on. They draw the masks.
    """

    source: Callable[[Config, OpenedDataset], OpenedDataset]
    rows: Callable[[Config, OpenedDataset], Rows]


DRAWN_BY_RATE = MaskingAtLoad(mask_at_load, make_masked_rows)
"""Masks are drawn for each epoch with a masking rate."""
