"""Settings of the objective of masked spans."""

import math
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import repeat_setting, setting
from bertdata.config.settings import ExampleSettings, require
from bertdata.examples.masking.settings import MaskingSettings, check_loading, check_passes
from bertdata.records import ShardLayout

REPLACEMENTS = ("span", "word_piece")
ENDPOINTS = ("external", "internal")
_NUMPY_SEEDS = 1 << 32


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanSettings(ExampleSettings):
    """Settings that, together with the text and the vocabulary, determine the bytes of masked spans.

    max_predictions_per_seq: 0 means the number of masks that a full block gets from masked_lm_prob.

    The names ``replacement`` and ``endpoints``, and the names of their choices, are those of SpanBERT's
    program.
    """

    objective: str = setting("span", "training objective of the examples")
    as_original: bool = setting(
        False,
        "draw the same spans as SpanBERT's program with a seeded NumPy; drop sentences longer than a block",
    )
    max_predictions_per_seq: int = setting(
        0, "most masked positions in an example; 0: what masked_lm_prob gives for a full example"
    )
    dupe_factor: int = setting(1, "number of passes over the text, each with different masks", least=1)
    masked_lm_prob: float = repeat_setting(MaskingSettings, "masked_lm_prob")
    mask_share: float = repeat_setting(MaskingSettings, "mask_share")
    random_share: float = repeat_setting(MaskingSettings, "random_share")
    kept_share: float = repeat_setting(MaskingSettings, "kept_share")
    shortest_span: int = setting(1, "fewest words in a masked span", least=1)
    longest_span: int = setting(10, "most words in a masked span", least=1)
    geometric_p: float = setting(
        0.2,
        "p of the geometric distribution of span lengths: spans of n + 1 words are 1 - p times as "
        "likely as spans of n words",
        above=0,
        most=1,
    )
    replacement: str = setting(
        "span",
        "span: one draw decides how all ids of a span are replaced; word_piece: one draw for each id",
        REPLACEMENTS,
    )
    endpoints: str = setting(
        "external",
        "boundaries of a span. external: the ids just outside it; internal: its first and last ids",
        ENDPOINTS,
    )
    masks: bool = setting(
        True,
        "mask token ids; --no-masks: write examples without masks, which are masked when they are loaded",
    )

    def __post_init__(self) -> None:
        super(SpanSettings, self).__post_init__()
        check_passes(self)
        require(
            1 <= self.shortest_span <= self.longest_span <= self.max_seq_length,
            f"spans of {self.shortest_span} to {self.longest_span} words, expected 1 or more, "
            f"at most max_seq_length ({self.max_seq_length})",
        )
        require(
            0 < self.geometric_p <= 1, f"geometric_p is {self.geometric_p:g}, expected above 0, at most 1"
        )
        for name, value, known in (
            ("replacement", self.replacement, REPLACEMENTS),
            ("endpoints", self.endpoints, ENDPOINTS),
        ):
            require(value in known, f"{name} is {value!r}, expected one of {', '.join(known)}")
        check_loading(self.masking)

    @property
    def masking(self) -> MaskingSettings:
        """Settings of the masks. Spans consist of words, so whole words are masked if anything is masked."""
        return MaskingSettings(
            masked_lm_prob=self.masked_lm_prob,
            max_predictions_per_seq=self.most_masks,
            mask_share=self.mask_share,
            random_share=self.random_share,
            kept_share=self.kept_share,
            whole_word_mask=self.masks,
        )

    @property
    def numpy_seed(self) -> int:
        """The seed as NumPy accepts it, which is its lowest 32 bits."""
        return self.random_seed % _NUMPY_SEEDS

    @property
    def longest_body(self) -> int:
        """The largest number of ids that a block has between [CLS] and [SEP]."""
        return self.max_seq_length - 2

    @property
    def most_masks(self) -> int:
        """The largest number of masked positions that an example can have."""
        return self.max_predictions_per_seq or math.ceil(self.longest_body * self.masked_lm_prob)

    def as_json(self) -> dict[str, Any]:
        """Return the settings by name, as a manifest stores them.

        max_predictions_per_seq is the number in use, even if it was given as 0. ``masks`` is left out if it
        is True.
        """
        found = super(SpanSettings, self).as_json()
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
