"""Settings of BERT's objective, and where the originals' habits differ in it."""

from dataclasses import dataclass
from typing import Any, Literal

from bertdata.config.declared import setting, setting_of
from bertdata.config.settings import ExampleSettings, check
from bertdata.examples.masking.settings import DEFAULT_SHARES, SHARES, MaskingSettings
from bertdata.examples.pairs import PairRules
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class PairHabits:
    """Habits of one dialect in making pairs and masks.

    own_next_label: next-sentence label when ten draws all gave the example's own document.
    fills_predictions: long examples get as many masks as reach the prediction limit (Graphcore).
    """

    own_next_label: Literal[0, 1] = 1
    fills_predictions: bool = False


HABITS = {
    "mlperf": PairHabits(),
    "google": PairHabits(),
    "nvidia": PairHabits(own_next_label=0),
    "graphcore": PairHabits(fills_predictions=True),
}
"""By dialect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BertSettings(ExampleSettings):
    """Everything, besides the text and the vocabulary, that decides the bytes of a shard for BERT."""

    max_predictions_per_seq: int = setting_of(MaskingSettings, "max_predictions_per_seq")
    dupe_factor: int = setting(10, "passes over the text; each draws new masks", least=1)
    masked_lm_prob: float = setting_of(MaskingSettings, "masked_lm_prob")
    short_seq_prob: float = setting(
        0.1, "share of documents cut into shorter examples of random length", least=0, most=1
    )
    whole_word_mask: bool = setting_of(MaskingSettings, "whole_word_mask")
    remask: bool = setting(
        False, "write masked positions first, in Graphcore's order (TFRecord only)", record="container"
    )
    masks: bool = setting(True, "mask token ids; without masks, examples are masked when they are loaded")
    mask_share: float = setting_of(MaskingSettings, "mask_share")
    random_share: float = setting_of(MaskingSettings, "random_share")
    kept_share: float = setting_of(MaskingSettings, "kept_share")

    def __post_init__(self) -> None:
        super(BertSettings, self).__post_init__()
        self.check_predictions()
        check(self.dupe_factor >= 1, f"dupe_factor is {self.dupe_factor}, expected 1 or more")
        _ = self.masking  # checks its settings
        short = self.short_seq_prob
        check(0 <= short <= 1, f"short_seq_prob is {short}, expected a probability from 0 to 1")
        check(
            not (self.remask and self.format != "tfrecord"),
            f"remask needs the container tfrecord: {self.format} holds examples in their usual order",
        )
        check(
            not (self.remask and not self.habits.fills_predictions),
            f"remask needs the dialect graphcore: those of {self.dialect} have too few masks",
        )
        check(
            not (self.remask and self.max_predictions_per_seq >= self.max_seq_length),
            "remask needs max_predictions_per_seq below max_seq_length, for the unmasked ids",
        )
        check(self.masks or not self.remask, "remask orders masked positions: it needs masks")

    def check_predictions(self) -> None:
        """SettingsError where max_predictions_per_seq does not suit an example."""
        check(
            1 <= self.max_predictions_per_seq <= self.max_seq_length,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, "
            f"expected 1 to max_seq_length ({self.max_seq_length})",
        )

    @property
    def habits(self) -> PairHabits:
        return HABITS[self.dialect]

    @property
    def pair_rules(self) -> PairRules:
        return PairRules(
            max_tokens=self.max_seq_length - 3,
            short_seq_prob=self.short_seq_prob,
            own_label=self.habits.own_next_label,
        )

    @property
    def masking(self) -> MaskingSettings:
        """The settings of the masks, with what the originals never mask: [CLS] and [SEP] alone."""
        unmasked = self.max_seq_length - self.max_predictions_per_seq
        return MaskingSettings(
            masked_lm_prob=self.masked_lm_prob,
            max_predictions_per_seq=self.max_predictions_per_seq,
            mask_share=self.mask_share,
            random_share=self.random_share,
            kept_share=self.kept_share,
            whole_word_mask=self.whole_word_mask,
            never_masked=("cls", "sep"),
            joins_over_special=True,
            most_unmasked=unmasked if self.habits.fills_predictions else None,
        )

    def as_json(self) -> dict[str, Any]:
        """The settings by name, as a manifest of old had them.

        ``masks`` only where there are none, the shares of masked ids only where they are not the defaults.
        """
        found = super(BertSettings, self).as_json()
        if self.masks:
            del found["masks"]
        if self.masking.shares == DEFAULT_SHARES:
            for name in SHARES:
                del found[name]
        return found

    @property
    def layout(self) -> ShardLayout:
        return ShardLayout(
            objective=self.objective,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
            remask=self.remask,
        )
