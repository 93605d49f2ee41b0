"""Section of later recipes: the end of a trapezoidal schedule, growing updates, counts of tokens."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check

SHAPES = ("1-sqrt", "linear", "cosine")


@dataclass(frozen=True, kw_only=True)
class RecipeSection(Section):
    """Keys of a phase that is counted in tokens, whose updates grow, or whose rate falls at its end."""

    lr_decay: int | float = setting(
        0,
        "for trapezoidal: updates at the end of steps over which the rate falls, an integer number or a "
        "share of steps (0 <= x <= 1)",
        least=0,
        common=True,
        by_phase=True,
    )
    lr_decay_shape: str = setting(
        SHAPES[0], "for trapezoidal: course of that fall, 1-sqrt, linear or cosine", SHAPES
    )
    lr_end_share: float = setting(
        0.0,
        "for trapezoidal: the rate after steps updates, as a share of the base rate",
        least=0,
        most=1,
        by_phase=True,
    )
    train_tokens: int | None = setting(
        None,
        "tokens to train on, by the mean length of a row; gives the number of updates",
        least=1,
        by_phase=True,
    )
    warmup_tokens: int | None = setting(
        None,
        "tokens over which the rate rises, in place of warmup, by the mean length of a row",
        least=1,
        by_phase=True,
    )
    batch_warmup_from: int | None = setting(
        None,
        "rows (examples, or packed rows) of the first update over all workers; updates grow by a micro-batch "
        "at a time (default: all updates are of one size)",
        least=1,
        by_phase=True,
    )
    batch_warmup_tokens: int | None = setting(
        None, "tokens over which updates grow, by the mean length of a row", least=1, by_phase=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "expected an integer (updates) or a share of steps, 0 <= x <= 1"
        check(isinstance(self.lr_decay, int) or self.lr_decay <= 1, f"lr_decay is {self.lr_decay}, {wanted}")
        both = (self.batch_warmup_from is None) == (self.batch_warmup_tokens is None)
        check(both, "batch_warmup_from and batch_warmup_tokens need each other")

    def idle(self) -> list[str]:
        """The keys of a fall of the rate that does not take place."""
        return [] if self.lr_decay else ["lr_decay_shape", "lr_end_share"]
