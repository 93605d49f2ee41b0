"""Updates that are counted in tokens and may grow during a batch warm-up.

The examples come in the same order as they would in updates of equal size.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainer.config.schedules.form import Schedule
from trainer.data.batches import Form
from trainer.data.examples import Rows
from trainer.data.loader import Loader
from trainer.data.order import Dealer, Position, WorkerRows
from trainer.run.course import UpdateCourse, plan_course
from trainer.run.planned_updates import PlannedUpdates
from trainer.update.worker import Runtime


class GrowingUpdates(PlannedUpdates):
    """The updates of a phase in which updates may grow. ``trainer.run.course`` determines their sizes.

    The fields accumulation and examples describe the last, largest updates.
    """

    def __init__(self, runtime: Runtime, rows: Rows) -> None:
        super().__init__(runtime, rows)
        self.course = plan_course(runtime.config, rows, runtime.copies, self.batch_size, self.accumulation)

    def form(self, accumulation: int | None = None) -> Form:
        return super().form(accumulation or self.course.micro_batches(0))

    def count_examples(self, update: int) -> int:
        return self.examples * self.course.micro_batches(update) // self.accumulation

    def add_warmup(self, schedule: Schedule) -> Schedule:
        return self.course.add_warmup(schedule)

    def make_new_loader(self, **settings: Any) -> Loader:
        return GrowingLoader(self.course, self.rows, **settings)

    def describe(self) -> str:
        grown = self.course.describe()
        return f"{super().describe()}{grown and f' at last; {grown},'}"


class GrowingLoader(Loader):
    """Loader for a phase in which updates may grow. ``trainer.run.course`` determines their sizes."""

    def __init__(self, course: UpdateCourse, rows: Rows, **given: Any) -> None:
        self._course = course
        super().__init__(rows, **given)

    def find_rows(self, dealer: Dealer, start: Position, update: int) -> Iterator[WorkerRows]:
        found = self._rows.find_for_sizes(dealer, start, update, self._course.micro_batches)
        return self._find_in_stretches(dealer, start, update) if found is None else found

    def _find_in_stretches(self, dealer: Dealer, start: Position, update: int) -> Iterator[WorkerRows]:
        """Yield this worker's rows, one stretch after the other. In a stretch, all updates have the same
        size.

        The dealer assigns rows to workers for a fixed size of updates. So at each change of the size a new
        dealer begins, at the position in the data that was reached.
        """
        while True:
            until = self._course.next_change(update)
            most_rows = dealer.most_rows if until is None else 0  # 0: find the rows of one update at a time
            count = dealer.world_size * self._course.micro_batches(update)
            sized = replace(dealer, micro_batches=count, most_rows=most_rows)
            for own in self._rows.find(sized, start):
                yield own
                update, start = update + len(own.positions), own.positions[-1]
                if update == until:
                    break
