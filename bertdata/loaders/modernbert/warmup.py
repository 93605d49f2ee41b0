"""Batch warm-up: the number of rows of a batch grows with the number of tokens seen."""

import math
from itertools import accumulate

from bertdata.loaders.modernbert.settings import ModernBertSettings


class BatchWarmup:
    """Computes the number of rows of each batch during the warm-up.

    Let r0 be the first number of rows, R the final one, and T this rank's share of the warm-up's tokens,
    rounded up. Batches have r rows until ceil(T / (r0 + ... + R-1) * (r0 + ... + r)) tokens were seen.
    """

    def __init__(self, settings: ModernBertSettings) -> None:
        self._least = self._most = settings.rows
        self._limits: list[int] = []
        if settings.warmup is not None:
            self._least = settings.warmup.sequences // settings.micro_batch_size
            # From 2 to 4 rows with T = 1000: 2 rows until 400 tokens, 3 rows until 1000, then 4. Each stage's
            # share of the tokens is proportional to its rows.
            steps = range(self._least, self._most)
            share = math.ceil(settings.warmup.tokens / settings.world)
            each = share / sum(steps)
            self._limits = [min(share, math.ceil(each * total)) for total in accumulate(steps)]

    def rows(self, tokens: int) -> int:
        """Return the number of rows of the next batch. tokens: number of tokens in all earlier batches,
        without padding.
        """
        passed = sum(tokens >= limit for limit in self._limits)
        return self._least + passed
