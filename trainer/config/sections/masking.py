"""Section of the masks: the dataset's own, or drawn anew when examples are loaded."""

from dataclasses import dataclass

from bertdata.config.declared import schema_of, setting, setting_of
from bertdata.examples.masking.settings import MASKINGS, MaskingSettings
from trainer.config.sections.section import Section, check, named

CONSTANT = "constant"
_OF_MODERNBERT = ("vocab", "masked_lm_prob", "eval_masked_lm_prob")
_AT_LOAD = ", in dynamic masks"


@dataclass(frozen=True, kw_only=True)
class MaskingSection(Section):
    """Masks of the training examples. Every key but the first counts for masks drawn at load only."""

    masking: str = named(
        "masking",
        "static",
        "masks of the training examples: static, the dataset's own, or dynamic, drawn anew in each "
        "epoch when examples are loaded; fairseq and fairseq-0.12 draw them as these releases do; "
        "modernbert: order, packing and masks of its loader",
        "static",
        common=True,
    )
    vocab: str | None = setting(
        None, "vocabulary for dynamic masks, a file or a name (default: the copy beside the data)"
    )
    masked_lm_prob: float = setting_of(
        MaskingSettings, "masked_lm_prob", help=_AT_LOAD, above=0, most=1, by_phase=True
    )
    eval_masked_lm_prob: float | None = setting(
        None,
        "share of tokens masked in evaluation data that have no masks (default: masked_lm_prob)",
        above=0,
        most=1,
        by_phase=True,
    )
    masked_lm_prob_end: float | None = setting(
        None, "that share at the last update of the phase, for a schedule of it", above=0, most=1
    )
    masked_lm_prob_schedule: str = setting(
        CONSTANT,
        "course of masked_lm_prob over the phase: constant, linear, cosine, or steps of equal length",
        (CONSTANT, "linear", "cosine", "steps"),
    )
    masked_lm_prob_steps: int = setting(
        4, "number of shares that the schedule steps has, the first and the last one included", least=2
    )
    mask_share: float = setting_of(MaskingSettings, "mask_share", help=_AT_LOAD, by_phase=True)
    random_share: float = setting_of(MaskingSettings, "random_share", help=_AT_LOAD, by_phase=True)
    kept_share: float = setting_of(MaskingSettings, "kept_share", help=_AT_LOAD, by_phase=True)
    whole_word_mask: bool = setting_of(MaskingSettings, "whole_word_mask", help=_AT_LOAD)
    mask_counts: str = setting_of(MaskingSettings, "mask_counts", help=_AT_LOAD)

    def __post_init__(self) -> None:
        super().__post_init__()
        changes = self.masked_lm_prob_schedule != CONSTANT
        if self.masking == "modernbert":
            check(not changes, "masking modernbert has one rate: without masked_lm_prob_schedule")
        if self.is_dynamic:
            self.settings(1)
            check(
                changes == (self.masked_lm_prob_end is not None),
                f"masked_lm_prob_schedule {self.masked_lm_prob_schedule} needs masked_lm_prob_end"
                if changes
                else f"masked_lm_prob_end needs a masked_lm_prob_schedule other than {CONSTANT}",
            )

    @property
    def is_dynamic(self) -> bool:
        """True where masks are drawn of each example by itself."""
        return self.masking in MASKINGS

    def settings(self, max_predictions_per_seq: int) -> MaskingSettings:
        """The settings of dynamic masks with so many slots."""
        given = self.values()
        known = {name: given[name] for name in schema_of(MaskingSettings) if name in given}
        return MaskingSettings(**known, max_predictions_per_seq=max_predictions_per_seq)

    def idle(self) -> list[str]:
        """The keys without effect: those of dynamic masks, except the ones that the masks here have too."""
        if self.is_dynamic or ":" in self.masking:  # the user's own may read them all
            return []
        kept = ("masking", *_OF_MODERNBERT) if self.masking == "modernbert" else ("masking",)
        return [name for name in self.values() if name not in kept]
