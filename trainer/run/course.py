"""The sizes of a phase's updates, which grow in a batch warm-up, and the tokens before each of them."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from bertdata.config.settings import check
from bertdata.errors import SettingsError
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from bertdata.loaders.modernbert.warmup import BatchWarmup
from trainer.config.schedules.form import Schedule
from trainer.config.settings import Config
from trainer.data.examples import Rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Updates of one size, from ``start`` on.

    micro_batches: those of each copy in an update. before: those in all updates before ``start``.
    """

    start: int
    micro_batches: int
    before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateCourse:
    """The sizes of the updates, a function of configuration and data: the same on every worker, and resumed.

    tokens: of a micro-batch of every copy together, by the mean length of the rows. warmup_tokens: those over
    which the rate rises; 0: as the schedule says.
    """

    stretches: tuple[Stretch, ...]
    tokens: int
    warmup_tokens: int = 0

    def micro_batches(self, update: int) -> int:
        """The micro-batches of each copy in an update."""
        return self._of(update).micro_batches

    def next_change(self, update: int) -> int | None:
        """The first update of the next size, None after the last change."""
        place = bisect_right(self.stretches, update, key=attrgetter("start"))
        return self.stretches[place].start if place < len(self.stretches) else None

    def tokens_before(self, update: int) -> int:
        """The tokens of all updates before."""
        return self.micro_batches_before(update) * self.tokens

    def micro_batches_before(self, update: int) -> int:
        """The micro-batches of each copy in all updates before."""
        of = self._of(update)
        return of.before + (update - of.start) * of.micro_batches

    def first_update_after(self, micro_batches: float) -> int:
        """The first update before which so many micro-batches of each copy, or more, are trained."""
        of = self.stretches[max(0, bisect_right(self.stretches, micro_batches, key=attrgetter("before")) - 1)]
        return of.start + math.ceil((micro_batches - of.before) / of.micro_batches)

    def warmed_up(self, schedule: Schedule) -> Schedule:
        """The schedule with a rate that rises with the tokens, where that is asked for."""
        if not self.warmup_tokens:
            return schedule
        return lambda update: schedule(update) * min(1.0, self.tokens_before(update) / self.warmup_tokens)

    def describe(self) -> str:
        """The sizes in words, empty where all are the same."""
        first, last = self.stretches[0], self.stretches[-1]
        if first is last:
            return ""
        until = f"until update {last.start} ({self.tokens_before(last.start):,} tokens)"
        return f"they grow from {first.micro_batches} to {last.micro_batches} micro-batches of a copy {until}"

    def _of(self, update: int) -> Stretch:
        return self.stretches[bisect_right(self.stretches, update, key=attrgetter("start")) - 1]


def plan_course(config: Config, rows: Rows, copies: int, batch_size: int, accumulation: int) -> UpdateCourse:
    """The course of a phase. SettingsError where the first update is no whole number of micro-batches."""
    keys = config.recipe
    if keys.warmup_tokens and config.schedule.warmup:
        raise SettingsError("warmup and warmup_tokens are both given; expected one of them")
    each = max(1, round(float(rows.sizes().lengths.mean()) * batch_size))
    stretches = [Stretch(start=0, micro_batches=accumulation, before=0)]
    if keys.batch_warmup_from is not None:
        check(rows.bins == 1, "batch_warmup_from and bins cannot be used together")
        one = copies * batch_size
        least, rest = divmod(keys.batch_warmup_from, one)
        wanted = f"expected a multiple of {one} ({copies} x {batch_size} rows: a micro-batch of each copy)"
        found = f"batch_warmup_from is {keys.batch_warmup_from}, {wanted}, at most {accumulation * one}"
        check(not rest and 0 < least <= accumulation, found)
        settings = ModernBertSettings(
            batch_size=batch_size * accumulation,
            micro_batch_size=batch_size,
            max_seq_len=rows.layout.max_seq_length,
            world=copies,
            warmup=TokenWarmup(sequences=least * batch_size, tokens=keys.batch_warmup_tokens or 0)
            if least < accumulation
            else None,
        )
        stretches = list(grow(BatchWarmup(settings), each, accumulation))
    return UpdateCourse(
        stretches=tuple(stretches), tokens=each * copies, warmup_tokens=keys.warmup_tokens or 0
    )


def grow(warmup: BatchWarmup, tokens: int, most: int) -> Iterator[Stretch]:
    """The stretches of ModernBERT's rule, up to the one of ``most`` micro-batches of so many tokens each."""
    update = before = 0
    while True:
        size = warmup.rows(before * tokens)
        yield Stretch(start=update, micro_batches=size, before=before)
        if size == most:
            return
        while warmup.rows(before * tokens) == size:
            update, before = update + 1, before + size
