"""Settings of BERT's objective, and where the originals' habits differ in it."""

from dataclasses import dataclass
from typing import Any, Literal

from bertdata.config.declared import setting
from bertdata.config.settings import ExampleSettings, check
from bertdata.records import ShardLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class Habits:
    """Habits of one dialect in making pairs and masks.

    own_next_label: next-sentence label when ten draws all gave the example's own document.
    fills_predictions: long examples get as many masks as reach the prediction limit (Graphcore).
    """

    own_next_label: Literal[0, 1] = 1
    fills_predictions: bool = False


HABITS = {
    "mlperf": Habits(),
    "google": Habits(),
    "nvidia": Habits(own_next_label=0),
    "graphcore": Habits(fills_predictions=True),
}
"""By dialect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BertSettings(ExampleSettings):
    """Everything, besides the text and the vocabulary, that decides the bytes of a shard for BERT."""

    max_predictions_per_seq: int = setting(76, "most masked positions in an example")
    dupe_factor: int = setting(10, "passes over the text, each with masks of its own")
    masked_lm_prob: float = setting(0.15, "share of an example's ids to mask")
    short_seq_prob: float = setting(0.1, "share of documents cut to a random shorter length")
    whole_word_mask: bool = setting(False, "mask all pieces of a word or none")
    remask: bool = setting(False, "write Graphcore's order: masked positions first (TFRecord only)")
    masks: bool = setting(
        True, "mask ids; without, ids are the text's own, to be masked when they are loaded"
    )

    def __post_init__(self) -> None:
        super(BertSettings, self).__post_init__()
        self.check_predictions()
        check(self.dupe_factor >= 1, f"dupe_factor is {self.dupe_factor}, expected 1 or more")
        for name in ("masked_lm_prob", "short_seq_prob"):
            value = getattr(self, name)
            check(0 <= value <= 1, f"{name} is {value}, expected a probability from 0 to 1")
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
    def habits(self) -> Habits:
        return HABITS[self.dialect]

    def as_json(self) -> dict[str, Any]:
        """The settings by name; ``masks`` only where there are none, so that a manifest keeps its bytes."""
        found = super(BertSettings, self).as_json()
        if self.masks:
            del found["masks"]
        return found

    @property
    def layout(self) -> ShardLayout:
        return ShardLayout(
            objective=self.objective,
            max_seq_length=self.max_seq_length,
            max_predictions_per_seq=self.max_predictions_per_seq,
            remask=self.remask,
        )
