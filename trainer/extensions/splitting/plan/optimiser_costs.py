"""Memory and traffic of the optimisers."""

from typing import NamedTuple

from trainer.config.update import find_preset


class OptimiserCosts(NamedTuple):
    """Bytes a value: of its moments, and read and written by a step. has_change: a step makes u first."""

    moments: int
    moved: int
    has_change: bool = False


def optimiser_costs(name: str) -> OptimiserCosts:
    """The costs of a name of trainer.config.update.PRESETS, whose state is fp32.

    A step reads gradients for their norm (4 bytes a value), then reads and writes weight and moments; LAMB
    makes its change u apart, adds the weight decay, takes two norms and adds u to the weights.
    """
    preset = find_preset(name)
    if preset.kind == "sgd":
        return OptimiserCosts(4, 24) if preset.momentum else OptimiserCosts(0, 16)
    return OptimiserCosts(8, 32) if preset.trust == "none" else OptimiserCosts(8, 68, has_change=True)
