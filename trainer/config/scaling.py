"""Section of the loss scale, which keeps small gradients in fp16 from underflow."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check


@dataclass(frozen=True, kw_only=True)
class ScalingSection(Section):
    """The loss scale of fp16: fixed, or adjusted during training within bounds."""

    loss_scaling: float = setting(0.0, "fixed loss scale for fp16; 0: adjusted during training", least=0)
    init_loss_scale: float = setting(65536.0, "initial value of an adjusted loss scale", above=0)
    min_loss_scale: float = setting(1.0, "lower bound of an adjusted loss scale", above=0)
    max_loss_scale: float = setting(16777216.0, "upper bound of an adjusted loss scale", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        least, first, most = self.min_loss_scale, self.init_loss_scale, self.max_loss_scale
        wanted = f"expected min_loss_scale ({least:g}) to max_loss_scale ({most:g})"
        check(least <= first <= most, f"init_loss_scale is {first:g}, {wanted}")
