"""One worker's training in a phase: the planned updates, then its model, its state and its checkpoints."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import BertDataError, StorageError
from bertdata.io.terminal import say_error
from trainer.checkpoints.checkpoint import CheckpointWriter, State, WholeTensors
from trainer.config.settings import Config
from trainer.config.updates import Schedule
from trainer.data.batches import Form, make_form
from trainer.data.examples import Rows, find_rows
from trainer.data.loader import Loader, Update
from trainer.data.order import Position
from trainer.errors import NotFiniteError, WorkerLost
from trainer.model.bert import HeadedBert
from trainer.plugins import find
from trainer.run.runtime import Runtime
from trainer.update.strategy import find_strategy


def plan_updates(runtime: Runtime, data: OpenedDataset) -> "PlannedUpdates":
    """The configured updates of a phase. SettingsError where the data cannot have the configured rows."""
    rows, keys = find_rows(runtime.config, data), runtime.config.keys
    grow = keys["batch_warmup_from"] or keys["train_tokens"] or keys["warmup_tokens"]
    return find("update", "counted in tokens")(runtime, rows) if grow else PlannedUpdates(runtime, rows)


class PlannedUpdates:
    """The updates of a phase that this run makes, numbered from ``start`` to ``last``.

    batch_size: rows of a micro-batch, each an example or a pack. accumulation: micro-batches of each copy of
    the model. examples_per_row: on average. examples: those of an update over all workers. interval:
    examples trained between two evaluations, 0 without any but the last.
    """

    loader_kind: Callable[..., Loader] = Loader

    def __init__(self, runtime: Runtime, rows: Rows) -> None:
        config, copies = runtime.config, runtime.copies
        self.runtime, self.rows, self.start = runtime, rows, 0
        self.examples_per_row = rows.examples_per_row
        self.batch_size, self.accumulation = rows.micro_batches(config, copies, self.examples_per_row)
        self.examples = round(copies * self.batch_size * self.accumulation * self.examples_per_row)
        self.interval = 0
        if config.data.eval_data is not None:
            self.interval = config.section(find("keys", "evaluation")).interval(self.examples)

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

        return self.loader_kind(
            self.rows,
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

    def tell_epochs(self, state: State) -> None:
        """Log the epochs of a mixture's sources."""
        if self.rows.data.sources:
            find("mixture", "epochs")(self, state)

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


_LOST_SECONDS = 3.0  # for a save after a worker was lost: the launcher will soon end this one


class Training(AbstractContextManager["Training"]):
    """The model, its strategy and its state, from the start point on.

    Weights and moments have the same bits on all workers. is_over: all updates of the phase are made.
    tensors: ``WholeTensors``, or the like as the strategy divides them. saved_step: the update of the last
    checkpoint.
    As a context it waits for the last save.
    """

    def __init__(self, runtime: Runtime, model: HeadedBert, fresh: State) -> None:
        self.state = fresh
        self.is_over = False
        self.start_point = "new"
        self.saved_step = 0
        self.learning_rate = 0.0
        self.runtime, self.model = runtime, model
        self.schedule = runtime.config.make_schedule(runtime.copies)
        worker = runtime.worker(model)
        self.strategy = find_strategy(worker)
        self.tensors: Any
        if runtime.division.is_split:
            self.tensors = find("split model", "tensors")(runtime, model.config, self.strategy)
        else:
            self.tensors = WholeTensors(worker, self.strategy)
        self._writer = CheckpointWriter(on_failure=runtime.workers.stopping.request)

    def update(self, updates: Sequence[Update]) -> list[Tensor]:
        """Make the updates. Returns of each this worker's sums, as Strategy.update does."""
        self.learning_rate = self.schedule(self.state.step)
        batches = [update.batches for update in updates]
        return self.strategy.update(batches, self.learning_rate, self.state.update_number)

    def advance(self, position: Position, examples: int) -> None:
        """Count one update of that many examples. position: in the data, after the update."""
        step = self.state.step + 1
        trained = self.state.trained + examples
        self.state = replace(self.state, step=step, trained=trained, position=position)

    @property
    def is_resumed(self) -> bool:
        """True if the run goes on with the same phase after a checkpoint of it."""
        return self.start_point.startswith("resumed")

    def save(self) -> None:
        """Copy the state to host memory and start writing it, as a checkpoint on each machine.

        The save before is waited for; its error ends all workers. NotFiniteError where a weight is not a
        number.
        """
        failure = self._writer.wait()
        strategy = self.strategy
        strategy.fetch()
        if not self.tensors.are_finite():
            raise NotFiniteError(f"update {self.state.step}: a weight is not a number, so nothing is saved")
        if failure is None:
            scale = strategy.step.scale.state_dict()
            state = replace(self.state, applied=strategy.step.applied, loss_scale=scale)
            self.tensors.save(state, self._writer)
        self._share_failure(failure)
        self.saved_step = self.state.step

    def finish_save(self) -> None:
        """Wait until the last save is on each machine's disk. An error of one ends all workers."""
        self._share_failure(self._writer.wait())

    def _share_failure(self, failure: Exception | None) -> None:
        """End all workers if a save failed on any machine."""
        if failure is not None and not isinstance(failure, BertDataError):
            raise failure
        for message in self.runtime.workers.gather(failure and str(failure)):
            if message is not None:
                self.runtime.stop_all(StorageError(message))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait for the save under way after an error too, but not after a second Ctrl-C."""
        if isinstance(error, KeyboardInterrupt):
            return
        failure = self._writer.wait(_LOST_SECONDS if isinstance(error, WorkerLost) else None)
        if failure is not None:
            say_error(f"trainer: error: {failure}")
