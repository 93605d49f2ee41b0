"""Section of the masks: the dataset's own, or drawn anew when examples are loaded."""

from dataclasses import dataclass

from bertdata.examples.dynamic_masking.settings import MaskingSettings
from trainer.config.section import Section, check

CONSTANT = "constant"


@dataclass(frozen=True, kw_only=True)
class MaskingSection(Section):
    """Masks of the training examples; every key but the first counts for dynamic masks only."""

    masking: str = "static"
    vocab: str | None = None  # path or name; None: the copy beside the data
    masked_lm_prob: float = 0.15
    masked_lm_prob_end: float | None = None
    masked_lm_prob_schedule: str = CONSTANT
    masked_lm_prob_steps: int = 4
    mask_share: float = 0.8
    random_share: float = 0.1
    kept_share: float = 0.1
    whole_word_mask: bool = False
    mask_counts: str = "fixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        changes = self.masked_lm_prob_schedule != CONSTANT
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
        return self.masking == "dynamic"

    def settings(self, max_predictions_per_seq: int) -> MaskingSettings:
        """The settings of dynamic masks with so many slots."""
        return MaskingSettings(
            masked_lm_prob=self.masked_lm_prob,
            max_predictions_per_seq=max_predictions_per_seq,
            mask_share=self.mask_share,
            random_share=self.random_share,
            kept_share=self.kept_share,
            whole_word_mask=self.whole_word_mask,
            mask_counts=self.mask_counts,
        )

    def idle(self) -> list[str]:
        """The keys that count for dynamic masks only, where masks are the dataset's own."""
        return [] if self.is_dynamic else [name for name in self.values() if name != "masking"]
