"""The share of ids to mask over training: constant, or a schedule of the update's number."""

import math
from typing import NamedTuple

from trainer.config.masking import MaskingSection

_DECIMALS = 6  # of a scheduled rate, so that it does not depend on a machine's cosine


class MaskRate(NamedTuple):
    """The configured rate, which may change from the first update to the last of ``updates``."""

    keys: MaskingSection
    updates: int

    @property
    def largest(self) -> float:
        return max(self.keys.masked_lm_prob, self.keys.masked_lm_prob_end or 0)

    def at(self, update: int) -> float:
        """The rate of update ``update``, counted from 0. After the last one it stays."""
        start, end = self.keys.masked_lm_prob, self.keys.masked_lm_prob_end
        if end is None:
            return start
        way = min(update / max(self.updates - 1, 1), 1)
        if self.keys.masked_lm_prob_schedule == "cosine":
            way = (1 - math.cos(math.pi * way)) / 2
        elif self.keys.masked_lm_prob_schedule == "steps":  # equal stretches of constant rates
            last = self.keys.masked_lm_prob_steps - 1
            way = min(update * (last + 1) // self.updates, last) / last
        return round(start + (end - start) * way, _DECIMALS)
