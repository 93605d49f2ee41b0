"""Masks n-grams of words when examples are loaded. Each example has its own random stream.

Needs NumPy when it is imported.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bertdata._native import Engine, default_engine, kernels
from bertdata.errors import SettingsError
from bertdata.examples.dynamic_masking.counter_stream import CounterStream
from bertdata.examples.dynamic_masking.masker import Masker
from bertdata.examples.masking.prepared_settings import MaskingRules, prepare_masking_rules
from bertdata.examples.masking.reference import Masked, Starts
from bertdata.examples.masking.settings import MaskingSettings, check_loading
from bertdata.examples.sop.ngrams import compute_ngram_limits, mask_ngrams_at_load
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Vocabulary


class NgramMasker(Masker):
    """Masks n-grams of words in examples whose ids belong to one vocabulary. It can be pickled.

    limits: cumulative probabilities of the numbers of words in an n-gram (``ngram_limits``). Empty to mask
        single words.
    """

    def __init__(self, rules: MaskingRules, limits: list[float], engine: Engine) -> None:
        self._limits = limits
        super().__init__(rules, engine)

    def __reduce__(self) -> tuple[type[Masker], tuple[object, ...]]:
        return NgramMasker, (self._rules, self._limits, self._engine)

    def _make_kernel(self) -> Any:
        return kernels.DynamicMasker(**self._rules.make_kernel_arguments(), ngram_limits=self._limits)

    def _mask_one(self, ids: list[int], rate: float, key: int, number: int, words: Starts) -> Masked:
        # Without limits, single words are masked, for which no number of words has to be drawn.
        if not self._limits:
            return super()._mask_one(ids, rate, key, number, words)
        stream = CounterStream(key, number)
        return mask_ngrams_at_load(ids, rate, self._limits, self._rules, stream, words)


def make_ngram_masker(
    vocabulary: Vocabulary,
    settings: MaskingSettings,
    of_data: Mapping[str, Any],
    engine: Engine | None = None,
) -> NgramMasker:
    """Make the object that masks n-grams for one vocabulary. Raises SettingsError if no n-grams can be drawn.

    settings: settings of the masks at load.
    of_data: the settings in the dataset's manifest, empty if the dataset has no manifest. They determine the
        lengths of n-grams. Whole words are masked if ``settings`` or ``of_data`` asks for it.
    """
    check_loading(settings)
    defaults = SopSettings()
    longest = of_data.get("ngram", defaults.ngram)
    if settings.mask_counts != "fixed" and longest > 1:
        raise SettingsError(
            f"mask_counts is {settings.mask_counts}, expected fixed: n-grams mask the share of ids asked for"
        )
    favors_shorter = of_data.get("favor_shorter_ngram", defaults.favor_shorter_ngram)
    limits = compute_ngram_limits(longest, favors_shorter=favors_shorter) if longest > 1 else []
    whole = settings.whole_word_mask or of_data.get("whole_word_mask", defaults.whole_word_mask)
    rules = prepare_masking_rules(vocabulary, replace(settings, whole_word_mask=whole))
    return NgramMasker(rules, limits, engine or default_engine())
