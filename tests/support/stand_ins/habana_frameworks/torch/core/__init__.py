"""The bridge itself; in lazy mode with mark_step, otherwise with the compiler's backend."""

from habana_frameworks.torch import processor
from habana_frameworks.torch.core.step_closure import mark_step

__all__ = ["mark_step"]

processor.take_the_place_of_the_card()
