"""Sizes of a phase's updates when they grow in a batch warm-up, and the tokens before each update."""

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
    """Consecutive updates of one size, beginning with update ``start``.

    micro_batches: micro-batches per update that each copy of the model computes.
    before: micro-batches that each copy computes in all updates before ``start`` together.
    """

    start: int
    micro_batches: int
    before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateCourse:
    """Sizes of all updates of a phase, as a list of stretches of equal size.

    The course is a function of configuration and data, so it is the same on every worker and after a resume.
    tokens: tokens of one micro-batch per copy, summed over the copies, estimated by the mean row length.
    warmup_tokens: tokens over which the learning rate rises. 0: the rate follows the schedule alone.
    """

    stretches: tuple[Stretch, ...]
    tokens: int
    warmup_tokens: int = 0

    def micro_batches(self, update: int) -> int:
        """Return the number of micro-batches that each copy computes in this update."""
        return self._find_stretch(update).micro_batches

    def next_change(self, update: int) -> int | None:
        """Return the number of the next update whose size differs from this update's, or None if all later
        updates have this size.
        """
        place = bisect_right(self.stretches, update, key=attrgetter("start"))
        return self.stretches[place].start if place < len(self.stretches) else None

    def tokens_before(self, update: int) -> int:
        """Return the tokens of all earlier updates together."""
        return self.micro_batches_before(update) * self.tokens

    def micro_batches_before(self, update: int) -> int:
        """Return the number of micro-batches that each copy has computed before this update."""
        of = self._find_stretch(update)
        return of.before + (update - of.start) * of.micro_batches

    def first_update_after(self, micro_batches: float) -> int:
        """Return the first update that begins when each copy has computed at least ``micro_batches``."""
        of = self.stretches[max(0, bisect_right(self.stretches, micro_batches, key=attrgetter("before")) - 1)]
        return of.start + math.ceil((micro_batches - of.before) / of.micro_batches)

    def add_warmup(self, schedule: Schedule) -> Schedule:
        """Return the schedule, multiplied by a rise over ``warmup_tokens`` if that is set."""
        if not self.warmup_tokens:
            return schedule
        return lambda update: schedule(update) * min(1.0, self.tokens_before(update) / self.warmup_tokens)

    def describe(self) -> str:
        """Describe the growing sizes in words. Return "" if all updates have one size."""
        first, last = self.stretches[0], self.stretches[-1]
        if first is last:
            return ""
        until = f"until update {last.start} ({self.tokens_before(last.start):,} tokens)"
        return f"they grow from {first.micro_batches} to {last.micro_batches} micro-batches of a copy {until}"

    def _find_stretch(self, update: int) -> Stretch:
        """Return the stretch that contains this update."""
        return self.stretches[bisect_right(self.stretches, update, key=attrgetter("start")) - 1]


def plan_course(config: Config, rows: Rows, copies: int, batch_size: int, accumulation: int) -> UpdateCourse:
    """Return the course of a phase.

    copies: copies of the model over all workers. batch_size: rows of a micro-batch.
    accumulation: micro-batches per copy in a full-size update.
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
    """Yield the stretches of ModernBERT's batch warm-up, in which updates grow.

    most: micro-batches per copy in the last, largest updates.

    tokens: tokens of one micro-batch per copy.
    """
    # Sizes of the updates in micro-batches per copy: 2 2 2 3 3 4 4 4 ...
    # -> stretches of size 2 from update 0, size 3 from update 3, size 4 from update 5.
    update = before = 0
    while True:
        size = warmup.rows(before * tokens)
        yield Stretch(start=update, micro_batches=size, before=before)
        if size == most:
            return
        while warmup.rows(before * tokens) == size:
            update, before = update + 1, before + size
