"""One worker's training in a phase: its model, its strategy, its state and its checkpoints."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from torch import Tensor

from bertdata.errors import BertDataError, StorageError
from bertdata.io.terminal import say_error
from trainer.checkpoints.checkpoint import CheckpointWriter, State, WholeTensors
from trainer.config.schedules.form import Schedule
from trainer.data.loader import Update
from trainer.data.order import Position
from trainer.errors import NotFiniteError, WorkerLost
from trainer.model.headed import HeadedBert
from trainer.run.agreement import agree_on_weights
from trainer.run.strategies import find_strategy
from trainer.splitting.split_strategy import SplitStrategy
from trainer.splitting.split_tensors import SplitTensors
from trainer.update.worker import Runtime

_LOST_SECONDS = 3.0  # for a save after a worker was lost: the launcher will soon end this one


class Training(AbstractContextManager["Training"]):
    """The model, its strategy and its state, from the start point on.

    Weights and moments have the same bits on all workers. is_over: all updates of the phase are made.
    is_stopped: it was asked to stop before that.
    tensors: ``WholeTensors``, or the like as the strategy divides them. saved_step: the update of the last
    checkpoint.
    As a context it waits for the last save.
    """

    def __init__(
        self, runtime: Runtime, model: HeadedBert, fresh: State, schedule: Schedule | None = None
    ) -> None:
        """schedule: of the learning rate; None: the configured one."""
        self.state = fresh
        self.is_over = self.is_stopped = False
        self.start_point = "new"
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
        number, and an error too where workers that hold the same weights have different ones.
        """
        failure = self._writer.wait()
        strategy = self.strategy
        strategy.fetch()
        agree_on_weights(self.runtime, *self.tensors.held(), step=self.state.step)
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
