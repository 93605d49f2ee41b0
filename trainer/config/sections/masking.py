"""Configuration section of masking: whether masks come from the dataset or are drawn while examples are
loaded.
"""

from dataclasses import dataclass

from bertdata.config.declared import derive_schemas, repeat_setting, setting
from bertdata.config.settings import require
from bertdata.examples.masking.settings import MASKINGS, MaskingSettings
from trainer.config.sections.section import Section, declare_plugin_key

CONSTANT = "constant"
_OF_MODERNBERT = ("vocab", "masked_lm_prob", "eval_masked_lm_prob")
_AT_LOAD = ", in dynamic masks"


@dataclass(frozen=True, kw_only=True)
class MaskingSection(Section):
    """Keys about the masks of the training examples.

    Only the first key applies to masks that are stored in the dataset.
    """

    masking: str = declare_plugin_key(
        "masking",
        "static",
        "masks of the training examples: static (stored in the dataset), dynamic (drawn again in each "
        "epoch while loading), fairseq or fairseq-0.12 (the dynamic masks of fairseq's newest code or of "
        "its release 0.12), or modernbert (order, packing and masks of ModernBERT's loader)",
        "static",
        common=True,
    )
    vocab: str | None = setting(
        None,
        "vocabulary (a file, or the name of a published one) for drawing masks and for the tokens of a "
        "task's text (default: the copy stored with the data or the checkpoint)",
    )
    masked_lm_prob: float = repeat_setting(
        MaskingSettings, "masked_lm_prob", help=_AT_LOAD, above=0, most=1, common=True, by_phase=True
    )
    eval_masked_lm_prob: float | None = setting(
        None,
        "share of tokens to mask in evaluation data stored without masks (default: masked_lm_prob)",
        above=0,
        most=1,
        by_phase=True,
    )
    masked_lm_prob_end: float | None = setting(
        None, "masked_lm_prob at the last update of the phase, for masked_lm_prob_schedule", above=0, most=1
    )
    masked_lm_prob_schedule: str = setting(
        CONSTANT,
        "how masked_lm_prob changes over the phase: constant, linear, cosine, or steps of equal length",
        (CONSTANT, "linear", "cosine", "steps"),
    )
    masked_lm_prob_steps: int = setting(
        4, "number of values in masked_lm_prob_schedule steps, first and last included", least=2
    )
    mask_share: float = repeat_setting(MaskingSettings, "mask_share", help=_AT_LOAD, by_phase=True)
    random_share: float = repeat_setting(MaskingSettings, "random_share", help=_AT_LOAD, by_phase=True)
    kept_share: float = repeat_setting(MaskingSettings, "kept_share", help=_AT_LOAD, by_phase=True)
    whole_word_mask: bool = repeat_setting(MaskingSettings, "whole_word_mask", help=_AT_LOAD)
    mask_counts: str = repeat_setting(MaskingSettings, "mask_counts", help=_AT_LOAD)

    def __post_init__(self) -> None:
        super().__post_init__()
        changes = self.masked_lm_prob_schedule != CONSTANT
        if self.masking == "modernbert":
            require(not changes, "masking modernbert has one rate: without masked_lm_prob_schedule")
        if self.is_dynamic:
            self.settings(1)
            require(
                changes == (self.masked_lm_prob_end is not None),
                f"masked_lm_prob_schedule {self.masked_lm_prob_schedule} needs masked_lm_prob_end"
                if changes
                else f"masked_lm_prob_end needs a masked_lm_prob_schedule other than {CONSTANT}",
            )

    @property
    def is_dynamic(self) -> bool:
        """True if masks are drawn for each example when it is loaded, independently of the other examples."""
        return self.masking in MASKINGS

    def settings(self, max_predictions_per_seq: int) -> MaskingSettings:
        """Return the settings for masks that are drawn while examples are loaded.

        max_predictions_per_seq: largest number of masked positions in an example.
        """
        given = self.values()
        known = {name: given[name] for name in derive_schemas(MaskingSettings) if name in given}
        return MaskingSettings(**known, max_predictions_per_seq=max_predictions_per_seq)

    def list_idle_keys(self) -> list[str]:
        """Return the masking keys that have no effect with this value of ``masking``."""
        if self.is_dynamic or ":" in self.masking:  # a user's own class of masking may read any of these keys
            return []
        kept = ("masking", *_OF_MODERNBERT) if self.masking == "modernbert" else ("masking",)
        return [name for name in self.values() if name not in kept]
