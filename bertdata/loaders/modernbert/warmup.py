"""The warm-up of the batch size: the more tokens were seen, the more rows a batch has."""

import math
from itertools import accumulate

from bertdata.loaders.modernbert.settings import ModernBertSettings


class BatchWarmup:
    """Object that computes the number of rows of each batch during the warm-up of the batch size.

    Let r0 be the number of rows at first, R the final number, and T this rank's share of the warm-up's
    tokens, rounded up. Batches have r rows until ceil(T / (r0 + ... + R-1) * (r0 + ... + r)) tokens were
    seen.
    """

    def __init__(self, settings: ModernBertSettings) -> None:
        self._least = self._most = settings.rows
        self._limits: list[int] = []
        if settings.warmup is not None:
            self._least = settings.warmup.sequences // settings.micro_batch_size
            # A stage is the part of the warm-up with the same number of rows. Its share of the tokens is
            # proportional to its rows. From 2 to 4 rows with T = 1000, for example, batches have 2 rows until
            # 400 tokens, 3 rows until 1000, then 4.
            steps = range(self._least, self._most)
            share = math.ceil(settings.warmup.tokens / settings.world)
            each = share / sum(steps)
            self._limits = [min(share, math.ceil(each * total)) for total in accumulate(steps)]

    def rows(self, tokens: int) -> int:
        """Return the number of rows of the next batch.

        tokens: number of tokens in all earlier batches, without padding.
        """
        passed = sum(tokens >= limit for limit in self._limits)
        return self._least + passed
