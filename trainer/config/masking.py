"""Section of the masks: the dataset's own, or drawn anew when examples are loaded."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.examples.dynamic_masking.settings import MaskingSettings
from trainer.config.section import Section, check

CONSTANT = "constant"


@dataclass(frozen=True, kw_only=True)
class MaskingSection(Section):
    """Masks of the training examples; every key but the first counts for dynamic masks only."""

    masking: str = setting(
        "static",
        "masks of the training examples: static, the dataset's own, or dynamic, drawn anew in each "
        "epoch when examples are loaded",
        ("static", "dynamic"),
        common=True,
    )
    vocab: str | None = setting(
        None, "vocabulary for dynamic masks, a file or a name (default: the copy beside the data)"
    )
    masked_lm_prob: float = setting(
        0.15, "share of an example's ids that dynamic masks cover", above=0, most=1
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
    mask_share: float = setting(0.8, "share of dynamically masked ids that become [MASK]", least=0, most=1)
    random_share: float = setting(
        0.1, "share of dynamically masked ids that become a random token", least=0, most=1
    )
    kept_share: float = setting(0.1, "share of dynamically masked ids that stay as they are", least=0, most=1)
    whole_word_mask: bool = setting(False, "mask all pieces of a word or none, in dynamic masks")
    mask_counts: str = setting(
        "fixed",
        "number of dynamic masks: fixed, the share of an example's ids, or drawn, each id with that "
        "probability",
        ("fixed", "drawn"),
    )

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
