"""fairseq's masks, drawn when examples are loaded.

An example's masks are a function of the seed, the epoch and the example's number in the dataset. Needs NumPy
when it is imported.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bertdata._native import Engine, default_engine, kernels
from bertdata.errors import DatasetError, SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import Masker
from bertdata.examples.fairseq.masks import (
    FairseqRules,
    compute_cumulative_shares,
    compute_most_masks,
    draw_masks,
)
from bertdata.examples.fairseq.seeds import compute_seeds
from bertdata.examples.fairseq.streams import STREAMS
from bertdata.examples.fairseq.words import check_dictionary, find_word_begins
from bertdata.examples.groups import MASKS, WORD_STARTS
from bertdata.examples.masking.prepared_settings import MaskingRules, prepare_masking_rules
from bertdata.examples.masking.reference import Masked, Starts
from bertdata.examples.masking.settings import MaskingSettings, check_loading
from bertdata.examples.objectives import find_objective
from bertdata.records import IDS, ShardLayout, Vocabulary

_GROUPS = {IDS, MASKS, WORD_STARTS}


class FairseqMasker(Masker):
    """Object that draws the masks that a release of fairseq draws. Its epochs count from 1. It can be
    pickled.
    """

    first_epoch = 1

    def __init__(
        self, rules: MaskingRules, fairseq_rules: FairseqRules, release: str, engine: Engine
    ) -> None:
        self._fairseq_rules, self._release = fairseq_rules, release
        super().__init__(rules, engine)

    def __reduce__(self) -> tuple[type[Masker], tuple[object, ...]]:
        return FairseqMasker, (self._rules, self._fairseq_rules, self._release, self._engine)

    def _make_kernel(self) -> Any:
        fairseq_rules = self._fairseq_rules
        return kernels.FairseqMasker(
            most=self.settings.max_predictions_per_seq,
            mask=fairseq_rules.mask,
            random_share=fairseq_rules.random_share,
            kept_share=fairseq_rules.kept_share,
            limits=fairseq_rules.limits,
            begins_word=fairseq_rules.begins_word or b"",
            multiple=fairseq_rules.multiple,
            draws_pcg=self._release == "fairseq",
        )

    @property
    def counts_vary(self) -> bool:
        return True

    def streams(self, seed: int, epoch: int, shard: str, before: int, numbers: Array) -> tuple[Array, Array]:
        """Return the seed of each example's random stream, and each example's number in the dataset.

        fairseq numbers examples through the whole dataset, so the number of examples in earlier shards is
        added.
        """
        of_dataset = numbers + numbers.dtype.type(before)
        return compute_seeds(seed, epoch, of_dataset), of_dataset

    def _mask_one(self, ids: list[int], rate: float, key: int, number: int, words: Starts) -> Masked:
        return draw_masks(ids, rate, self._fairseq_rules, STREAMS[self._release](key))

    def _check_ids(self, ids: Array, starts: Array, lengths: Array) -> None:
        super()._check_ids(ids, starts, lengths)
        if (ids == self._fairseq_rules.mask).any():
            raise DatasetError(
                f"the text holds the mask token (id {self._fairseq_rules.mask}), which fairseq refuses"
            )


def make_fairseq_masker(
    vocabulary: Vocabulary,
    settings: MaskingSettings,
    layout: ShardLayout,
    release: str,
    *,
    weights: Sequence[int] | None = None,
    engine: Engine | None = None,
) -> FairseqMasker:
    """Make the object that masks the blocks of a dataset as fairseq does.

    settings: settings of the masks. If max_predictions_per_seq is 0, every mask that can be drawn is kept.
    layout: largest sizes of the dataset's examples.
    release: the release of fairseq to reproduce, one of ``streams.RELEASES``.
    weights: weight of each id when a random token is drawn, for fairseq's ``freq_weighted_replacement``. None
        gives all ids except the first four the same weight.

    Raises SettingsError if fairseq does not support the vocabulary, the examples or the settings.
    """
    check_loading(replace(settings, max_predictions_per_seq=1))
    check_dictionary(vocabulary, release)
    _check_examples(layout, release)
    if settings.mask_counts != "fixed":
        raise SettingsError(
            f"mask_counts is {settings.mask_counts}, expected fixed: masking {release} masks a share of an "
            "example's ids"
        )
    whole = settings.whole_word_mask
    fairseq_rules = FairseqRules(
        mask=vocabulary.role("mask"),
        random_share=settings.random_share,
        kept_share=settings.kept_share,
        limits=tuple(compute_cumulative_shares(weights or [1] * vocabulary.size)),
        begins_word=find_word_begins(vocabulary) if whole else None,
    )
    room = _find_most_masks(settings, layout, release)
    plain = replace(settings, max_predictions_per_seq=room, never_masked=(), whole_word_mask=False)
    return FairseqMasker(
        prepare_masking_rules(vocabulary, plain), fairseq_rules, release, engine or default_engine()
    )


def _check_examples(layout: ShardLayout, release: str) -> None:
    """Raise SettingsError unless the examples are blocks of one segment with masks. ``release`` is for the
    message.
    """
    groups = set(find_objective(layout.objective).batch_type.groups())
    if MASKS not in groups or not groups <= _GROUPS:
        raise SettingsError(
            f"masking {release} needs blocks of one segment, those of bertdata create --objective mlm "
            f"--no-masks; the data has the objective {layout.objective}"
        )


def _find_most_masks(settings: MaskingSettings, layout: ShardLayout, release: str) -> int:
    """Return the most masked positions that the longest example of the layout can get.

    Raises SettingsError if max_predictions_per_seq is set and smaller than this number.
    """
    longest, asked = layout.max_seq_length, settings.max_predictions_per_seq
    needed = longest if settings.whole_word_mask else compute_most_masks(longest, settings.masked_lm_prob)
    if asked and asked < needed:
        raise SettingsError(
            f"max_predictions_per_seq is {asked}, expected {needed} or more, or none: masking {release} "
            "has no limit of masks"
        )
    return asked or needed
