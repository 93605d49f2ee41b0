"""Datasets whose masks are drawn when examples are loaded."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from bertdata.dataset.discover import FoundDataset, find_datasets
from bertdata.dataset.masked_data import MaskedData, masked_data, masker_of
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.dataset.vocabulary import known_vocabulary
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import Draws, Masker, unmask
from bertdata.examples.groups import WORD_STARTS, has_group, only_column
from bertdata.examples.masking.settings import MASKINGS
from bertdata.examples.objectives import find_objective
from bertdata.records import Buffer, ExampleBatch, Vocabulary
from bertdata.shards.packed.packs import PackBatch
from trainer.config.sections.masking import MaskingSection
from trainer.config.settings import Config
from trainer.data.examples import GatheredExamples, Piece, Rows
from trainer.data.order import OwnRows

_DECIMALS = 6  # of a scheduled rate, so that it does not depend on a machine's cosine


class MaskRate(NamedTuple):
    """The configured rate, which may change from the first update to the last of ``updates``."""

    keys: MaskingSection
    updates: int

    @property
    def largest(self) -> float:
        return max(self.keys.masked_lm_prob, self.keys.masked_lm_prob_end or 0)

    def at(self, update: int) -> float:
        """The rate of update ``update``, counted from 0. After the last one it stays."""
        start, end = self.keys.masked_lm_prob, self.keys.masked_lm_prob_end
        if end is None:
            return start
        way = min(update / max(self.updates - 1, 1), 1)
        if self.keys.masked_lm_prob_schedule == "cosine":
            way = (1 - math.cos(math.pi * way)) / 2
        elif self.keys.masked_lm_prob_schedule == "steps":  # equal stretches of constant rates
            last = self.keys.masked_lm_prob_steps - 1
            way = min(update * (last + 1) // self.updates, last) / last
        return round(start + (end - start) * way, _DECIMALS)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmaskedData(OpenedDataset):
    """A dataset to train on: its own masks are taken off, others are drawn for each epoch by the loader.

    layout: that of the masks to draw. masked: the same examples with as many masks as the largest rate draws.
    """

    masked: MaskedData
    rate: MaskRate

    @property
    def has_lengths(self) -> bool:
        return self.masked.has_lengths

    def lengths(self, shard: Shard) -> Buffer:
        """The tokens of each of the shard's examples."""
        return self.masked.lengths(shard)

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples without masks."""
        for batch in self.masked.source.batches(shard):
            yield unmask(batch)

    def packs(self, shard: Shard) -> Iterator[PackBatch]:
        """The shard's packed rows, their examples without masks."""
        for packs in self.masked.source.packs(shard):
            yield replace(packs, examples=unmask(packs.examples))

    @property
    def counts_vary(self) -> bool:
        return self.masked.masker.counts_vary

    def draw(
        self, gathered: GatheredExamples, own: OwnRows, pieces: list[Piece], update: int
    ) -> GatheredExamples:
        """The gathered examples with masks. Their ids are changed in place."""
        masker, before = self.masked.masker, self.examples_before
        keys, numbers = np.empty((2, len(gathered)), np.uint64)
        for part, (_, taken, places) in zip(own.parts, pieces, strict=True):
            keys[places], numbers[places] = masker.streams(
                self.masked.seed,
                part.epoch + masker.first_epoch,
                self.shards[part.file].name,
                before[part.file],
                taken.astype(np.uint64),
            )
        starts = np.arange(len(gathered), dtype=np.int64) * gathered.ids.shape[1]
        draws = Draws(keys=keys, numbers=numbers, rates=self._rates(gathered, len(own.positions), update))
        words, token_targets = self._word_starts(gathered)
        made = masker.mask(gathered.ids.reshape(-1), starts, gathered.lengths, draws, words)
        return replace(
            gathered,
            positions=made.positions,
            labels=made.labels,
            masks=made.counts,
            targets=gathered.targets | masker.following(made, gathered.lengths),
            token_targets=token_targets,
        )

    def _word_starts(self, gathered: GatheredExamples) -> tuple[Array | None, dict[str, Array]]:
        """The word starts of the gathered ids in one row, if there are some, and the task's own columns."""
        objective = find_objective(self.layout.objective)
        if not has_group(objective.batch_type, WORD_STARTS):
            return None, gathered.token_targets
        name, targets = only_column(objective.batch_type, WORD_STARTS).name, dict(gathered.token_targets)
        words = targets.pop(name) if WORD_STARTS in objective.unlearned else targets[name]
        return words.reshape(-1), targets

    def _rates(self, gathered: GatheredExamples, updates: int, first: int) -> Array:
        """The rate of each example, that of its row's update. first: number of the first update."""
        rates = [self.rate.at(first + number) for number in range(updates)]
        sizes = np.diff(gathered.row_ends, prepend=0)
        return np.repeat(np.repeat(np.array(rates), gathered.rows // updates), sizes)


def mask_at_load(config: Config, data: OpenedDataset) -> UnmaskedData:
    """The opened training data with masks to be drawn by the loader."""
    source = unmasked_source(config, data)
    rate = MaskRate(config.masking, config.schedule.steps)
    masker = _configured_masker(config, source, str(config.data.train_data), rate.largest)
    masked = masked_data(source, masker, seed=config.data.seed, rate=rate.largest)
    own: dict[str, Any] = {item.name: getattr(masked, item.name) for item in fields(OpenedDataset)}
    own["never_masked"] = masker.never_masked
    return UnmaskedData(**own, masked=masked, rate=rate)


def mask_once(config: Config, data: OpenedDataset, paths: str, held_out: bool) -> MaskedData:
    """The dataset at the paths, whose examples have no masks, with masks that are the same in each epoch.

    held_out: they are masked at the rate of evaluation.
    """
    keys = config.masking
    rate = (held_out and keys.eval_masked_lm_prob) or keys.masked_lm_prob
    masker = _configured_masker(config, data, paths, rate)
    return masked_data(data, masker, seed=config.data.seed, rate=rate)


def unmasked_source(config: Config, data: OpenedDataset) -> OpenedDataset:
    """The opened training data without masks that were drawn for it when it was opened."""
    return data.source if isinstance(data, MaskedData) else data


def _configured_masker(config: Config, data: OpenedDataset, paths: str, rate: float) -> Masker:
    """The masker of a dataset. rate: the largest."""
    keys = config.masking
    masking = keys.masking if keys.is_dynamic else MASKINGS[0]  # of data that are masked once
    dataset, vocabulary = find_vocabulary(config, data, paths, masking)
    settings = replace(keys.settings(config.data.max_predictions_per_seq or 0), masked_lm_prob=rate)
    return masker_of(data, dataset, vocabulary, settings, masking)


def find_vocabulary(
    config: Config, data: OpenedDataset, paths: str, masking: str
) -> tuple[FoundDataset, Vocabulary]:
    """The dataset at the first of the paths, and the given vocabulary, else the copy beside the data.

    SettingsError where there is none.
    """
    dataset = find_datasets(split_paths(paths)[0])[0]
    vocabulary = known_vocabulary(config.masking.vocab, dataset)
    if vocabulary is None:
        raise SettingsError(
            f"{data.name}: masking {masking} needs its vocabulary, which is not beside the data; give --vocab"
        )
    return dataset, vocabulary


def masked_rows(config: Config, data: OpenedDataset) -> Rows:
    """The rows of a dataset with masks to draw, if it does not keep those it has."""
    return Rows(data, data if isinstance(data, UnmaskedData) else None)


class MaskingAtLoad(NamedTuple):
    """A kind of masks that are drawn at load, as --masking names it.

    source: the opened training data as the loader takes them. rows: the rows that a training reads of them.
    """

    source: Callable[[Config, OpenedDataset], OpenedDataset]
    rows: Callable[[Config, OpenedDataset], Rows]


DRAWN_BY_RATE = MaskingAtLoad(mask_at_load, masked_rows)
"""Masks drawn for each epoch at a rate."""
