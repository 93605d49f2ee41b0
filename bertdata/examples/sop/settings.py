"""Settings of ALBERT's objective."""

from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.config.settings import ExampleSettings, require
from bertdata.examples.masking.mask_count import compute_masks_wanted
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.pairs import PairRules
from bertdata.examples.sop.ngrams import compute_ngram_limits
from bertdata.records import ShardLayout

LONGEST_NGRAM = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class SopSettings(ExampleSettings):
    """Settings that, together with the text and the vocabulary, determine the bytes of ALBERT's shards.

    Names and defaults are those of the program released with ALBERT.
    """

    objective: str = setting("sop", "training objective of the examples")
    max_predictions_per_seq: int = repeat_setting(MaskingSettings, "max_predictions_per_seq", default=20)
    dupe_factor: int = setting(40, "number of passes over the text, each with different masks", least=1)
    masked_lm_prob: float = repeat_setting(MaskingSettings, "masked_lm_prob")
    short_seq_prob: float = setting(
        0.1, "share of documents cut into shorter examples of random length", least=0, most=1
    )
    random_next_sentence: bool = setting(
        False,
        "give half of the pairs a random second segment, as in BERT (default: swap the two segments of "
        "half of the pairs)",
    )
    ngram: int = setting(3, "most consecutive words that are masked together", least=1, most=LONGEST_NGRAM)
    favor_shorter_ngram: bool = setting(
        True,
        "draw runs of n words with weight 1/n, so that short runs are common; without: long runs are common",
    )
    whole_word_mask: bool = repeat_setting(MaskingSettings, "whole_word_mask", default=True)
    permutation: bool = setting(
        False,
        "also shuffle the ids of other words, as many as are masked; masked ids and shuffled ids each get "
        "half of max_predictions_per_seq",
    )
    mask_share: float = repeat_setting(MaskingSettings, "mask_share")
    random_share: float = repeat_setting(MaskingSettings, "random_share")
    kept_share: float = repeat_setting(MaskingSettings, "kept_share")
    masks: bool = setting(
        True,
        "mask token ids; --no-masks: write examples without masks, which are masked when they are loaded",
    )

    def __post_init__(self) -> None:
        super(SopSettings, self).__post_init__()
        least = 2 if self.permutation else 1
        require(
            least <= self.max_predictions_per_seq <= self.max_seq_length,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, "
            f"expected {least} to max_seq_length ({self.max_seq_length})",
        )
        require(self.dupe_factor >= 1, f"dupe_factor is {self.dupe_factor}, expected 1 or more")
        require(1 <= self.ngram <= LONGEST_NGRAM, f"ngram is {self.ngram}, expected 1 to {LONGEST_NGRAM}")
        short = self.short_seq_prob
        require(0 <= short <= 1, f"short_seq_prob is {short}, expected a probability from 0 to 1")
        _ = self.masking  # Making the masking settings checks their values.

    @property
    def pair_rules(self) -> PairRules:
        return PairRules(
            max_tokens=self.max_seq_length - 3,
            short_seq_prob=self.short_seq_prob,
            swaps_halves=not self.random_next_sentence,
        )

    @property
    def masking(self) -> MaskingSettings:
        """Settings of the masks. As in ALBERT's program, only [CLS] and [SEP] are never masked."""
        return MaskingSettings(
            masked_lm_prob=self.masked_lm_prob,
            max_predictions_per_seq=self.max_predictions_per_seq // (2 if self.permutation else 1),
            mask_share=self.mask_share,
            random_share=self.random_share,
            kept_share=self.kept_share,
            whole_word_mask=self.whole_word_mask,
            never_masked=("cls", "sep"),
            joins_over_special=True,
        )

    @property
    def ngram_limits(self) -> list[float]:
        """Cumulative probabilities of the numbers of words in an n-gram."""
        return compute_ngram_limits(self.ngram, favors_shorter=self.favor_shorter_ngram)

    @property
    def ngram_seed(self) -> int:
        """Seed for the lengths of n-grams: the number that ALBERT's program passes to
        ``numpy.random.seed``.
        """
        return abs(self.random_seed) & 0xFFFFFFFF

    def most_masks(self, length: int) -> int:
        """Return the largest number of masked positions that an example of ``length`` ids can have."""
        return compute_masks_wanted(self.masking, length) * (2 if self.permutation else 1)

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as a manifest stores them. ``masks`` is left out if it is True."""
        found = super(SopSettings, self).as_json()
        if self.masks:
            del found["masks"]
        return found

    @property
    def layout(self) -> ShardLayout:
        return ShardLayout(
            objective=self.objective,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
        )
