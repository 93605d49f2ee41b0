"""Masks spans when examples are loaded. Each example has its own random stream.

Needs NumPy when it is imported.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bertdata._native import Engine, default_engine, kernels
from bertdata.errors import SettingsError
from bertdata.examples.columns import Array
from bertdata.examples.dynamic_masking.masker import DrawnMasks, Masker
from bertdata.examples.masking.prepared_settings import MaskingRules, prepare_masking_rules
from bertdata.examples.masking.reference import Masked, Starts
from bertdata.examples.masking.settings import MaskingSettings, check_loading
from bertdata.examples.span import masking
from bertdata.examples.span.make import make_kernel_rules
from bertdata.examples.span.masking import SpanRules
from bertdata.examples.span.settings import SpanSettings
from bertdata.examples.span.streams import BlockStream
from bertdata.records import Vocabulary

_OF_SPANS = ("max_seq_length", "shortest_span", "longest_span", "geometric_p", "replacement", "endpoints")
_OF_MASKS = ("masked_lm_prob", "max_predictions_per_seq", "mask_share", "random_share", "kept_share")


class SpanMasker(Masker):
    """Masks spans in examples whose ids belong to one vocabulary. It can be pickled.

    An example's first and last id are special tokens and are never masked.
    """

    def __init__(self, rules: MaskingRules, spans: SpanRules, engine: Engine) -> None:
        self._spans = spans
        super().__init__(rules, engine)

    def __reduce__(self) -> tuple[type[Masker], tuple[object, ...]]:
        return SpanMasker, (self._rules, self._spans, self._engine)

    def _make_kernel(self) -> Any:
        return kernels.SpanMasker(
            rules=make_kernel_rules(self._spans, self._rules.mask),
            continues_word=self._rules.continues_word,
            replacements=self._rules.replacements,
        )

    def _mask_one(self, ids: list[int], rate: float, key: int, number: int, words: Starts) -> Masked:
        # Spans are drawn from the ids between [CLS] and [SEP]. Their positions count from the first of these
        # ids, so 1 is added to get positions in the example.
        first, body, last = ids[:1], ids[1:-1], ids[1:][-1:]
        starts = [1 - self._rules.continues_word[token] for token in body] if words is None else words[1:-1]
        rules, stream = replace(self._spans, rate=rate), BlockStream(key, number)
        spans = masking.draw_spans(starts, rules, stream)
        shown = masking.replace_spans(body, spans, rules, self._rules.mask, self._rules.replacements, stream)
        positions = [position + 1 for start, stop in spans for position in range(start, stop)]
        return Masked([*first, *shown, *last], positions, [ids[position] for position in positions])

    def following(self, masks: DrawnMasks, lengths: Array) -> dict[str, Array]:
        """Return the boundaries of the spans that have ids to predict, computed from the masked positions.

        A span is a run of consecutive masked positions.
        """
        places, used = masks.positions, _mark_first_items(masks.counts, masks.positions.shape[1])
        # The masked positions [3, 4, 7], for example, are the spans 3 to 4 and 7 to 7. A span starts where
        # the position before it is not masked, and ends where the next position is not masked.
        follows = np.zeros(places.shape, bool)  # True if the position before is masked too
        follows[:, 1:] = used[:, 1:] & (np.diff(places, axis=1) == 1)
        is_last = used & ~np.pad(follows[:, 1:], ((0, 0), (0, 1)))
        rows, lefts, rights = np.nonzero(used & ~follows)[0], places[used & ~follows], places[is_last]
        if self._spans.are_external:
            # External boundaries are the ids next to the span. A span next to [CLS] or [SEP] has none, and is
            # left out.
            kept = (lefts > 1) & (rights < lengths[rows] - 2)
            rows, lefts, rights = rows[kept], lefts[kept] - 1, rights[kept] + 1
        counts = np.bincount(rows, minlength=len(places)).astype(np.int32)
        made = np.zeros((2, *places.shape), np.int32)
        made[:, _mark_first_items(counts, places.shape[1])] = lefts, rights
        return {"left_boundaries": made[0], "right_boundaries": made[1], "span_ends": counts}


def _mark_first_items(counts: Array, width: int) -> Array:
    """Return a boolean array of shape (N, width). Row i is True for its first ``counts[i]`` items."""
    found: Array = np.arange(width) < counts[:, np.newaxis]
    return found


def make_span_masker(
    vocabulary: Vocabulary,
    settings: MaskingSettings,
    of_data: Mapping[str, Any],
    engine: Engine | None = None,
) -> SpanMasker:
    """Make the object that masks spans for one vocabulary. Raises SettingsError if no spans can be drawn.

    settings: settings of the masks at load.
    of_data: the settings in the dataset's manifest, empty if the dataset has no manifest. They determine the
        lengths and the boundaries of spans.
    """
    check_loading(settings)
    if settings.mask_counts != "fixed":
        raise SettingsError(
            f"mask_counts is {settings.mask_counts}, expected fixed: spans mask the share of ids asked for"
        )
    known = {name: of_data[name] for name in _OF_SPANS if name in of_data}
    span_settings = SpanSettings(**known, **{name: getattr(settings, name) for name in _OF_MASKS})
    whole = replace(settings, whole_word_mask=True)
    return SpanMasker(
        prepare_masking_rules(vocabulary, whole),
        masking.prepare_span_rules(span_settings),
        engine or default_engine(),
    )
