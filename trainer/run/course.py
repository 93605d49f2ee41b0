"""The sizes of a phase's updates, which grow in a batch warm-up, and the number of tokens before each
update.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from bertdata.config.settings import require
from bertdata.errors import SettingsError
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from bertdata.loaders.modernbert.warmup import BatchWarmup
from trainer.config.schedules.form import Schedule
from trainer.config.settings import Config
from trainer.data.examples import Rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """A stretch: consecutive updates of the same size.

    start: number of the first update.
    micro_batches: micro-batches per update that each copy of the model computes.
    before: micro-batches that each copy has computed in all updates before ``start``.
    """

    start: int
    micro_batches: int
    before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateCourse:
    """The course of a phase: the sizes of all its updates, as stretches of updates of equal size.

    It follows from configuration and data alone, so it is the same on every worker and after a resume.
    tokens: tokens of a micro-batch, summed over the copies of the model. It is estimated from the mean length
    of rows.
    warmup_tokens: number of tokens over which the learning rate rises. 0: only the schedule determines the
    rate.
    """

    stretches: tuple[Stretch, ...]
    tokens: int
    warmup_tokens: int = 0

    def micro_batches(self, update: int) -> int:
        """Return the number of micro-batches that each copy of the model computes in this update."""
        return self._find_stretch(update).micro_batches

    def next_change(self, update: int) -> int | None:
        """Return the number of the next update that has another size than this update, or None if there is
        none.
        """
        place = bisect_right(self.stretches, update, key=attrgetter("start"))
        return self.stretches[place].start if place < len(self.stretches) else None

    def tokens_before(self, update: int) -> int:
        """Return the number of tokens in all updates before this one."""
        return self.micro_batches_before(update) * self.tokens

    def micro_batches_before(self, update: int) -> int:
        """Return the number of micro-batches that each copy of the model has computed before this update."""
        of = self._find_stretch(update)
        return of.before + (update - of.start) * of.micro_batches

    def first_update_after(self, micro_batches: float) -> int:
        """Return the first update before which each copy of the model has computed at least
        ``micro_batches``.
        """
        of = self.stretches[max(0, bisect_right(self.stretches, micro_batches, key=attrgetter("before")) - 1)]
        return of.start + math.ceil((micro_batches - of.before) / of.micro_batches)

    def add_warmup(self, schedule: Schedule) -> Schedule:
        """Return a schedule that rises over the first ``warmup_tokens``. Without a warm-up return it
        unchanged.

        schedule: learning rate for each update.
        """
        if not self.warmup_tokens:
            return schedule
        return lambda update: schedule(update) * min(1.0, self.tokens_before(update) / self.warmup_tokens)

    def describe(self) -> str:
        """Describe in words how the updates grow. Return "" if all updates have the same size."""
        first, last = self.stretches[0], self.stretches[-1]
        if first is last:
            return ""
        until = f"until update {last.start} ({self.tokens_before(last.start):,} tokens)"
        return f"they grow from {first.micro_batches} to {last.micro_batches} micro-batches of a copy {until}"

    def _find_stretch(self, update: int) -> Stretch:
        """Return the stretch (updates of equal size) to which this update belongs."""
        return self.stretches[bisect_right(self.stretches, update, key=attrgetter("start")) - 1]


def plan_course(config: Config, rows: Rows, copies: int, batch_size: int, accumulation: int) -> UpdateCourse:
    """Return the course (the sizes of all updates) of a phase.

    copies: number of copies of the model over all workers.
    batch_size: number of rows in a micro-batch.
    accumulation: number of micro-batches per copy in an update of full size.
    Raises SettingsError if batch_warmup_from is not a whole number of micro-batches.
    """
    keys = config.recipe
    if keys.warmup_tokens and config.schedule.warmup:
        raise SettingsError("warmup and warmup_tokens are both given; expected one of them")
    each = max(1, round(float(rows.sizes().lengths.mean()) * batch_size))
    stretches = [Stretch(start=0, micro_batches=accumulation, before=0)]
    if keys.batch_warmup_from is not None:
        require(rows.bins == 1, "batch_warmup_from and bins cannot be used together")
        one = copies * batch_size
        least, rest = divmod(keys.batch_warmup_from, one)
        wanted = f"expected a multiple of {one} ({copies} x {batch_size} rows: a micro-batch of each copy)"
        found = f"batch_warmup_from is {keys.batch_warmup_from}, {wanted}, at most {accumulation * one}"
        require(not rest and 0 < least <= accumulation, found)
        settings = ModernBertSettings(
            batch_size=batch_size * accumulation,
            micro_batch_size=batch_size,
            max_seq_len=rows.layout.max_seq_length,
            world=copies,
            warmup=TokenWarmup(sequences=least * batch_size, tokens=keys.batch_warmup_tokens or 0)
            if least < accumulation
            else None,
        )
        stretches = list(iterate_stretches(BatchWarmup(settings), each, accumulation))
    return UpdateCourse(
        stretches=tuple(stretches), tokens=each * copies, warmup_tokens=keys.warmup_tokens or 0
    )


def iterate_stretches(warmup: BatchWarmup, tokens: int, most: int) -> Iterator[Stretch]:
    """Yield the stretches (updates of equal size) of ModernBERT's batch warm-up, in which updates grow.

    tokens: tokens of a micro-batch, summed over the copies of the model.
    most: micro-batches per copy in the last and largest updates.
    """
    # Example: updates of 2, 2, 2, 3, 3, 4, 4, 4 ... micro-batches per copy give three stretches: size 2 from
    # update 0, size 3 from update 3, size 4 from update 5.
    update = before = 0
    while True:
        size = warmup.rows(before * tokens)
        yield Stretch(start=update, micro_batches=size, before=before)
        if size == most:
            return
        while warmup.rows(before * tokens) == size:
            update, before = update + 1, before + size
