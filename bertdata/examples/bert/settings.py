"""Settings of BERT's objective, and the ways in which BERT's programs differ."""

from dataclasses import dataclass
from typing import Any, Literal

from bertdata.config.declared import repeat_setting, setting
from bertdata.config.settings import ExampleSettings, require
from bertdata.examples.masking.settings import DEFAULT_SHARES, SHARES, MaskingSettings
from bertdata.examples.pairs import PairRules
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class DialectRules:
    """Rules by which one program for BERT's data makes pairs of segments and masks.

    own_next_label: the label if ten draws of a random document all gave the example's own document. 1 means
        that segment B counts as random, 0 that it counts as following A.
    fills_predictions: True gives long examples additional masks, so that at most ``max_seq_length -
        max_predictions_per_seq`` ids stay unmasked, as in Graphcore's program.
    """

    own_next_label: Literal[0, 1] = 1
    fills_predictions: bool = False


RULES_BY_DIALECT = {
    "mlperf": DialectRules(),
    "google": DialectRules(),
    "nvidia": DialectRules(own_next_label=0),
    "graphcore": DialectRules(fills_predictions=True),
}
"""The DialectRules of each dialect. A dialect is the program whose files are reproduced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BertSettings(ExampleSettings):
    """Settings that, together with the text and the vocabulary, determine the bytes of BERT's shards."""

    max_predictions_per_seq: int = repeat_setting(MaskingSettings, "max_predictions_per_seq")
    dupe_factor: int = setting(10, "number of passes over the text, each with different masks", least=1)
    masked_lm_prob: float = repeat_setting(MaskingSettings, "masked_lm_prob")
    short_seq_prob: float = setting(
        0.1, "share of documents cut into shorter examples of random length", least=0, most=1
    )
    whole_word_mask: bool = repeat_setting(MaskingSettings, "whole_word_mask")
    remask: bool = setting(
        False,
        "put the masked tokens of an example before all others, as Graphcore's program does (TFRecord only)",
        record="container",
    )
    masks: bool = setting(
        True,
        "mask token ids; --no-masks: write examples without masks, which are masked when they are loaded",
    )
    mask_share: float = repeat_setting(MaskingSettings, "mask_share")
    random_share: float = repeat_setting(MaskingSettings, "random_share")
    kept_share: float = repeat_setting(MaskingSettings, "kept_share")

    def __post_init__(self) -> None:
        super(BertSettings, self).__post_init__()
        self.check_predictions()
        require(self.dupe_factor >= 1, f"dupe_factor is {self.dupe_factor}, expected 1 or more")
        _ = self.masking  # Making the masking settings checks their values.
        short = self.short_seq_prob
        require(0 <= short <= 1, f"short_seq_prob is {short}, expected a probability from 0 to 1")
        require(
            not (self.remask and self.format != "tfrecord"),
            f"remask needs the container tfrecord: {self.format} holds examples in their usual order",
        )
        require(
            not (self.remask and not self.dialect_rules.fills_predictions),
            f"remask needs the dialect graphcore: those of {self.dialect} have too few masks",
        )
        require(
            not (self.remask and self.max_predictions_per_seq >= self.max_seq_length),
            "remask needs max_predictions_per_seq below max_seq_length, for the unmasked ids",
        )
        require(self.masks or not self.remask, "remask orders masked positions: it needs masks")

    def check_predictions(self) -> None:
        """Raise SettingsError unless max_predictions_per_seq is between 1 and max_seq_length."""
        require(
            1 <= self.max_predictions_per_seq <= self.max_seq_length,
            f"max_predictions_per_seq is {self.max_predictions_per_seq}, "
            f"expected 1 to max_seq_length ({self.max_seq_length})",
        )

    @property
    def dialect_rules(self) -> DialectRules:
        return RULES_BY_DIALECT[self.dialect]

    @property
    def pair_rules(self) -> PairRules:
        return PairRules(
            max_tokens=self.max_seq_length - 3,
            short_seq_prob=self.short_seq_prob,
            own_label=self.dialect_rules.own_next_label,
        )

    @property
    def masking(self) -> MaskingSettings:
        """Settings of the masks. As in Google's program, only [CLS] and [SEP] are never masked."""
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
            most_unmasked=unmasked if self.dialect_rules.fills_predictions else None,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as a manifest stores them.

        Two kinds of settings are left out, so that manifests stay equal to those of older versions: ``masks``
        if it is True, and the three shares of masked ids if all have their default values.
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
