"""Stand-in for Habana's bridge. It offers mark_step in lazy mode, and a compiler backend otherwise."""

from habana_frameworks.torch import processor
from habana_frameworks.torch.core.step_closure import mark_step

__all__ = ["mark_step"]

processor.take_the_place_of_the_card()
