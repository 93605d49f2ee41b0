"""Memory and traffic of the optimisers."""

from dataclasses import dataclass

from trainer.config.update import find_preset
from trainer.update.optimiser import CHUNK


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimiserCosts:
    """Bytes a value: of its moments, and read and written by a step. has_change: a step makes u first."""

    moments: int
    moved: int
    has_change: bool

    def working(self, values: int, largest: int) -> int:
        """Bytes of a step's own over so many values: those of one chunk, at least one whole tensor."""
        return 4 * min(values, CHUNK + largest) if self.has_change else 0


def optimiser_costs(name: str) -> OptimiserCosts:
    """The costs of a name of trainer.config.update.PRESETS, whose state is fp32.

    A step reads gradients for their norm (4 bytes a value), then reads and writes weight and moments; LAMB
    makes its change u apart, adds the weight decay, takes two norms and adds u to the weights.
    """
    preset = find_preset(name)
    if preset.kind == "sgd":
        return (
            OptimiserCosts(moments=4, moved=24, has_change=False)
            if preset.momentum
            else OptimiserCosts(moments=0, moved=16, has_change=False)
        )
    if preset.trust == "none":
        return OptimiserCosts(moments=8, moved=32, has_change=False)
    return OptimiserCosts(moments=8, moved=68, has_change=True)
