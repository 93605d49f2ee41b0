"""Settings of the objective of masked blocks."""

from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.config.settings import ExampleSettings, require
from bertdata.examples.masking.settings import MaskingSettings, check_loading, check_passes
from bertdata.examples.mlm.blocks import BREAKS
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class MlmSettings(ExampleSettings):
    """Settings that, together with the text and the vocabulary, determine the bytes of masked blocks.

    max_predictions_per_seq: most masked positions in an example. 0 means the number of masks that a full
        block gets from masked_lm_prob.
    """

    objective: str = setting("mlm", "training objective of the examples")
    blocks: str = setting(
        "complete_doc",
        "how text is cut into blocks, named as in fairseq: none (every N ids), complete (whole sentences), "
        "complete_doc (whole sentences of one document; default) or eos (one sentence per block)",
        BREAKS,
    )
    max_predictions_per_seq: int = setting(
        0, "most masked positions in an example; 0: what masked_lm_prob gives for a full example"
    )
    dupe_factor: int = setting(1, "number of passes over the text, each with different masks", least=1)
    masked_lm_prob: float = repeat_setting(MaskingSettings, "masked_lm_prob")
    mask_share: float = repeat_setting(MaskingSettings, "mask_share")
    random_share: float = repeat_setting(MaskingSettings, "random_share")
    kept_share: float = repeat_setting(MaskingSettings, "kept_share")
    whole_word_mask: bool = repeat_setting(MaskingSettings, "whole_word_mask")
    masks: bool = setting(
        True,
        "mask token ids; --no-masks: write examples without masks, which are masked when they are loaded",
    )

    def __post_init__(self) -> None:
        super(MlmSettings, self).__post_init__()
        require(self.blocks in BREAKS, f"blocks is {self.blocks!r}, expected one of {', '.join(BREAKS)}")
        check_passes(self)
        check_loading(self.masking)

    @property
    def masking(self) -> MaskingSettings:
        """Settings that say how many ids are masked and what replaces them."""
        return MaskingSettings(
            masked_lm_prob=self.masked_lm_prob,
            max_predictions_per_seq=self.most_masks,
            mask_share=self.mask_share,
            random_share=self.random_share,
            kept_share=self.kept_share,
            whole_word_mask=self.whole_word_mask,
        )

    @property
    def most_masks(self) -> int:
        """The largest number of masked positions that an example can have."""
        full = round(self.max_seq_length * self.masked_lm_prob)
        return self.max_predictions_per_seq or min(self.max_seq_length, max(1, full))

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as a manifest stores them.

        max_predictions_per_seq is the number in use, even if it was given as 0. ``masks`` is left out if it
        is True.
        """
        found = super(MlmSettings, self).as_json()
        if self.masks:
            del found["masks"]
        return found | {"max_predictions_per_seq": self.most_masks}

    @property
    def layout(self) -> ShardLayout:
        return ShardLayout(
            objective=self.objective,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.most_masks,
        )
