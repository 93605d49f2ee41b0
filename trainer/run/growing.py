"""Updates that are counted in tokens and may grow, with rows in the order of updates of one size."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from trainer.config.schedules.form import Schedule
from trainer.data.batches import Form
from trainer.data.examples import Rows
from trainer.data.loader import Loader
from trainer.data.order import Dealer, OwnRows, Position
from trainer.run.course import UpdateCourse, plan_course
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


class GrowingUpdates(PlannedUpdates):
    """The updates of a phase by its course. accumulation and examples are those of the last ones."""

    def __init__(self, runtime: Runtime, rows: Rows) -> None:
        super().__init__(runtime, rows)
        self.course = plan_course(runtime.config, rows, runtime.copies, self.batch_size, self.accumulation)

    def form(self, accumulation: int | None = None) -> Form:
        return super().form(accumulation or self.course.micro_batches(0))

    def examples_of(self, update: int) -> int:
        return self.examples * self.course.micro_batches(update) // self.accumulation

    def warmed_up(self, schedule: Schedule) -> Schedule:
        return self.course.warmed_up(schedule)

    def new_loader(self, **settings: Any) -> Loader:
        return GrowingLoader(self.course, self.rows, **settings)

    def describe(self) -> str:
        grown = self.course.describe()
        return f"{super().describe()}{grown and f' at last; {grown},'}"


class GrowingLoader(Loader):
    """A loader of updates as large as a course says."""

    def __init__(self, course: UpdateCourse, rows: Rows, **given: Any) -> None:
        self._course = course
        super().__init__(rows, **given)

    def find_rows(self, dealer: Dealer, start: Position, update: int) -> Iterator[OwnRows]:
        find_sized: Callable[..., Iterator[OwnRows]] | None = getattr(self._rows, "find_sized", None)
        if find_sized is not None:  # rows whose packing depends on the sizes of the updates before
            return find_sized(dealer, start, update, self._course.micro_batches)
        return self._in_stretches(dealer, start, update)

    def _in_stretches(self, dealer: Dealer, start: Position, update: int) -> Iterator[OwnRows]:
        """The rows of updates of one size, then those of the next one."""
        while True:
            until = self._course.next_change(update)
            most_rows = dealer.most_rows if until is None else 0  # 0: one update at a time
            count = dealer.workers * self._course.micro_batches(update)
            sized = replace(dealer, micro_batches=count, most_rows=most_rows)
            for own in self._rows.find(sized, start):
                yield own
                update, start = update + len(own.positions), own.positions[-1]
                if update == until:
                    break
