"""The updates that a run makes: their number, their size, the rows of their micro-batches."""

from typing import Any

from trainer.checkpoints.checkpoint import State
from trainer.config.schedules.form import Schedule
from trainer.config.settings import Config
from trainer.data.batches import Form
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.run.mixture_epochs import tell_epochs
from trainer.update.worker import Runtime


class PlannedUpdates:
    """The updates of a phase that this run makes, numbered from ``start`` to ``last``.

    batch_size: rows of a micro-batch, each an example or a pack. accumulation: micro-batches of each copy of
    the model. examples_per_row: on average. examples: those of an update over all workers. interval:
    examples trained between two evaluations, 0 without any but the last.
    """

    def __init__(self, runtime: Runtime, rows: Rows) -> None:
        config, copies = runtime.config, runtime.copies
        self.runtime, self.rows, self.start = runtime, rows, 0
        self.examples_per_row = rows.examples_per_row
        self.batch_size, self.accumulation = rows.micro_batches(config, copies, self.examples_per_row)
        self.examples = round(copies * self.batch_size * self.accumulation * self.examples_per_row)
        self.interval = 0
        if config.data.eval_data is not None:
            self.interval = config.evaluation.interval(self.examples)

    @property
    def last(self) -> int:
        return last_update(self.runtime.config, self.start)

    def form(self, accumulation: int | None = None) -> Form:
        """The form of the micro-batches. accumulation: None: that of the last updates."""
        runtime, device = self.runtime, self.runtime.device
        return make_form(
            self.rows,
            batch_size=self.batch_size,
            padded=runtime.has_rows,
            token_budget=runtime.config.data.token_budget,
            micro_batches=runtime.copies * (accumulation or self.accumulation),
            few_widths=device.compiles or device.needs_rows,
        )

    def examples_of(self, update: int) -> int:
        """Examples of the update over all workers."""
        return self.examples

    def warmed_up(self, schedule: Schedule) -> Schedule:
        """The schedule with a warm-up of its own."""
        return schedule

    def loader(self, form: Form, state: State) -> Loader:
        """The loader of this worker's micro-batches, from the state's position on."""
        config, division, device = self.runtime.config, self.runtime.division, self.runtime.device

        def warn(message: str) -> None:
            if not config.is_finetuning:  # features are one file for any number of workers
                self.runtime.log(f"warning: {message}")

        return self.new_loader(
            form=form,
            batch_size=self.batch_size,
            accumulation=self.accumulation * device.replicas,
            workers=division.copies,
            rank=division.copy,
            seed=config.data.seed,
            open_files=config.data.open_files,
            position=state.position,
            first_update=state.step,
            prepare=device.prepare,
            warn=warn,
        )

    def new_loader(self, **settings: Any) -> Loader:
        """Return a loader of the planned rows, with these arguments of ``Loader``."""
        return Loader(self.rows, **settings)

    def tell_epochs(self, state: State) -> None:
        """Log the epochs of a mixture's sources."""
        if self.rows.data.sources:
            tell_epochs(
                self.rows.data,
                state,
                self.runtime.log,
                start=self.start,
                last=self.last,
                examples=self.examples,
                examples_per_row=self.examples_per_row,
            )

    def describe(self) -> str:
        """The numbers of the updates, and the micro-batches of each."""
        runtime = self.runtime
        kind = ("cop", "ies", "y") if runtime.division.stages > 1 else ("worker",)
        parts = f"{_counted(runtime.copies, *kind)} x {_counted(self.accumulation, 'micro-batch', 'es')}"
        rows = f"{self.batch_size}"
        if self.examples_per_row > 1:
            rows += f" packed rows x {self.examples_per_row:.3f} (on average)"
        each = f"{parts} x {rows} = {self.examples} examples"
        return f"updates {self.start} to {self.last} of {runtime.config.schedule.steps}, each of {each}"


def last_update(config: Config, start: int) -> int:
    """The update that a run ends with, which begins after update ``start`` of its phase."""
    steps = config.schedule.steps
    return min(steps, start + (config.run.steps_this_run or steps))


def passes(interval: int, before: int, now: int) -> bool:
    """True if a multiple of the interval lies in (before, now]. Never for interval 0."""
    return interval > 0 and now // interval > before // interval


def _counted(number: int, noun: str, ending: str = "s", of_one: str = "") -> str:
    """The number with its noun, which has the ending, or the second one if the number is 1."""
    return f"{number} {noun}{of_one if number == 1 else ending}"
