"""The batch warm-up: the rows of a batch by the tokens of all batches before it."""

import math
from itertools import accumulate

from bertdata.loaders.modernbert.settings import ModernBertSettings


class BatchWarmup:
    """Batches of one row more, step by step.

    With r rows until the tokens of this rank reach ceil(T / (r0 + ... + R-1) * (r0 + ... + r)), where T is
    its share of the warm-up's tokens, rounded up, r0 the rows at first and R those at last.
    """

    def __init__(self, settings: ModernBertSettings) -> None:
        self._least = self._most = settings.rows
        self._limits: list[int] = []
        if settings.warmup is not None:
            self._least = settings.warmup.sequences // settings.micro_batch_size
            steps = range(self._least, self._most)
            share = math.ceil(settings.warmup.tokens / settings.world)
            each = share / sum(steps)
            self._limits = [min(share, math.ceil(each * total)) for total in accumulate(steps)]

    def rows(self, tokens: int) -> int:
        """The rows of the batch that follows so many tokens. Padding is none."""
        passed = sum(tokens >= limit for limit in self._limits)
        return self._least + passed
