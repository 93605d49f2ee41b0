"""A worker's training in a phase: the model, its strategy, the state and the saving of checkpoints."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from torch import Tensor

from bertdata.errors import BertDataError, StorageError
from bertdata.io.terminal import say_error
from bertdata.lineages.run_state import NEW
from trainer.checkpoints.checkpoint import CheckpointWriter, State, WholeTensors
from trainer.config.schedules.form import Schedule
from trainer.data.loader import Update
from trainer.data.order import Position
from trainer.errors import NotFiniteError, WorkerLost
from trainer.logs.unfinished_row import UnfinishedRow
from trainer.model.headed import HeadedBert
from trainer.run.agreement import check_same_weights
from trainer.run.best_checkpoint import add_evaluation
from trainer.run.strategies import find_strategy
from trainer.splitting.split_strategy import SplitStrategy
from trainer.splitting.split_tensors import SplitTensors
from trainer.update.worker import Runtime

# Seconds to wait for a checkpoint after a worker was lost. The launcher will soon end this worker too.
_LOST_SECONDS = 3.0


class Training(AbstractContextManager["Training"]):
    """A phase's training on this worker, from the start point to the end: model, strategy, state and
    checkpoints.

    As a context manager it waits at the end for the last checkpoint. Workers that hold the same weights have
    the same bits of weights and moments.
    state: counts of updates and examples, and the position in the data.
    start_kind: kind of the start point: "new", "weights", "phase 2" or "resumed".
    start_path: path of the checkpoint that the training starts from. Empty for "new".
    tensors: writes weights and moments of a whole or a divided model.
    saved_step: number of the update at which the last checkpoint was saved.
    is_over: True if all updates of the phase are made.
    is_stopped: True if the run was asked to stop before that.
    ends_early: True if an evaluation ended the run before that, by target_accuracy or patience.
    """

    def __init__(
        self, runtime: Runtime, model: HeadedBert, fresh: State, schedule: Schedule | None = None
    ) -> None:
        """Prepare the training of the model.

        fresh: the state of a run at update 0.
        schedule: learning rate for each update. None: the configured schedule.
        """
        self.state = fresh
        self.is_over = self.is_stopped = self.ends_early = False
        self.start_kind, self.start_path = NEW, ""
        self.saved_step = 0
        self.learning_rate = 0.0
        self.runtime, self.model = runtime, model
        self.schedule = schedule or runtime.config.make_schedule(runtime.copies)
        worker = runtime.worker(model)
        self.strategy = find_strategy(worker)
        self.tensors: SplitTensors | WholeTensors
        if isinstance(self.strategy, SplitStrategy):
            self.tensors = SplitTensors(runtime, model.config, self.strategy)
        else:
            self.tensors = WholeTensors(worker, self.strategy)
        self._writer = CheckpointWriter(on_failure=runtime.collective.stopping.request)

    def update(self, updates: Sequence[Update]) -> list[Tensor]:
        """Make the updates, and return for each the sums of loss and metrics on this worker, still on the
        device.
        """
        self.learning_rate = self.schedule(self.state.step)
        batches = [update.batches for update in updates]
        return self.strategy.update(batches, self.learning_rate, self.state.update_number)

    def advance(self, position: Position, examples: int) -> None:
        """Count an update.

        position: position in the data after the update.
        examples: number of examples of the update, over all workers.
        """
        step = self.state.step + 1
        trained = self.state.trained + examples
        self.state = replace(self.state, step=step, trained=trained, position=position)

    def count_evaluation(self, results: Mapping[str, float]) -> None:
        """Count an evaluation of the weights after the newest update, if the run looks for the best one.

        results: the results of the evaluation, by name.
        """
        metric = self.runtime.config.evaluation.keep_best
        if metric is not None:
            best = add_evaluation(self.state.best, metric, results, self.state.number)
            self.state = replace(self.state, best=best)

    @property
    def is_best(self) -> bool:
        """True if the weights after the newest update have the best evaluation so far."""
        return self.state.best.get("number") == self.state.number

    @property
    def start_point(self) -> str:
        """Kind and path of the start point, for example "resumed run/checkpoints/step-00000100"."""
        return f"{self.start_kind} {self.start_path}".strip()

    @property
    def is_resumed(self) -> bool:
        """True if the run continues the phase of its checkpoint."""
        return self.start_kind == "resumed"

    def save(self, row: UnfinishedRow | None = None) -> None:
        """Copy weights, moments and state to host memory, and start writing them as a checkpoint on each
        machine.

        row: the updates since the last row of the logs.

        A thread writes the files while training goes on. Before that, this waits for the previous checkpoint,
        and ends all workers if it could not be written.
        Raises NotFiniteError if a weight is not a number, and TrainerError if workers that hold the same
        weights have different bits in them.
        """
        failure = self._writer.wait()
        strategy = self.strategy
        strategy.fetch()
        check_same_weights(self.runtime, *self.tensors.held(), step=self.state.step)
        if not self.tensors.are_finite():
            raise NotFiniteError(f"update {self.state.step}: a weight is not a number, so nothing is saved")
        if failure is None:
            scale = strategy.optimiser_step.scale.state_dict()
            state = replace(
                self.state,
                applied=strategy.optimiser_step.applied,
                loss_scale=scale,
                unfinished_row={} if row is None else row.as_json(),
            )
            self.tensors.save(state, self._writer)
        self._share_failure(failure)
        self.saved_step = self.state.step

    def finish_save(self) -> None:
        """Wait until the last checkpoint is on the disk of each machine. End all workers if a machine could
        not write it.
        """
        self._share_failure(self._writer.wait())

    def _share_failure(self, failure: Exception | None) -> None:
        """End all workers if a checkpoint could not be written on any machine.

        failure: the error on this worker, or None.
        """
        if failure is not None and not isinstance(failure, BertDataError):
            raise failure
        for message in self.runtime.collective.gather(failure and str(failure)):
            if message is not None:
                self.runtime.stop_all(StorageError(message))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait until the last checkpoint is written, even after an error. After a second Ctrl-C, do not
        wait.
        """
        if isinstance(error, KeyboardInterrupt):
            return
        failure = self._writer.wait(_LOST_SECONDS if isinstance(error, WorkerLost) else None)
        if failure is not None:
            say_error(f"trainer: error: {failure}")
