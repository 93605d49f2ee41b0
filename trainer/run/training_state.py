"""A worker's training in a phase: its model, strategy, state and checkpoints."""

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

# seconds to wait for a save after a worker was lost, because the launcher will soon end this worker
_LOST_SECONDS = 3.0


class Training(AbstractContextManager["Training"]):
    """The model with its strategy and state, from the start point to the end of the phase.

    Weights and moments have the same bits on all workers. As a context manager, waits for the last
    checkpoint.
    state: counts of updates and examples, and the position in the data.
    start_point: kind and path of the start, for example "resumed run/checkpoints/step-00000100".
    tensors: writer of weights and moments, for a whole or a divided model.
    saved_step: update of the last checkpoint.
    is_over: all updates of the phase are made. is_stopped: the run was asked to stop before that.
    """

    def __init__(
        self, runtime: Runtime, model: HeadedBert, fresh: State, schedule: Schedule | None = None
    ) -> None:
        """schedule: learning rate by update. None: the configured schedule."""
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
        self._writer = CheckpointWriter(on_failure=runtime.collective.stopping.request)

    def update(self, updates: Sequence[Update]) -> list[Tensor]:
        """Make the updates.

        Return for each the sums of loss and metrics on this worker, still on the device.
        """
        self.learning_rate = self.schedule(self.state.step)
        batches = [update.batches for update in updates]
        return self.strategy.update(batches, self.learning_rate, self.state.update_number)

    def advance(self, position: Position, examples: int) -> None:
        """Count an update.

        position: place in the data after the update. examples: size of the update over all workers.
        """
        step = self.state.step + 1
        trained = self.state.trained + examples
        self.state = replace(self.state, step=step, trained=trained, position=position)

    @property
    def is_resumed(self) -> bool:
        """True if the run continues the same phase after a checkpoint."""
        return self.start_point.startswith("resumed")

    def save(self) -> None:
        """Copy the state to host memory and start writing it as a checkpoint on each machine.

        Training goes on while a thread writes the file. First waits for the previous checkpoint, and ends all
        workers if writing it has failed.
        Raises NotFiniteError if a weight is not a number, and TrainerError if workers that hold the same
        weights have different bits.
        """
        failure = self._writer.wait()
        strategy = self.strategy
        strategy.fetch()
        agree_on_weights(self.runtime, *self.tensors.held(), step=self.state.step)
        if not self.tensors.are_finite():
            raise NotFiniteError(f"update {self.state.step}: a weight is not a number, so nothing is saved")
        if failure is None:
            scale = strategy.optimiser_step.scale.state_dict()
            state = replace(self.state, applied=strategy.optimiser_step.applied, loss_scale=scale)
            self.tensors.save(state, self._writer)
        self._share_failure(failure)
        self.saved_step = self.state.step

    def finish_save(self) -> None:
        """Wait until the last checkpoint is on each machine's disk.

        End all workers if a machine failed to write it.
        """
        self._share_failure(self._writer.wait())

    def _share_failure(self, failure: Exception | None) -> None:
        """End all workers if writing a checkpoint failed on any machine."""
        if failure is not None and not isinstance(failure, BertDataError):
            raise failure
        for message in self.runtime.collective.gather(failure and str(failure)):
            if message is not None:
                self.runtime.stop_all(StorageError(message))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait until the last checkpoint is written, even after an error, except after a second Ctrl-C."""
        if isinstance(error, KeyboardInterrupt):
            return
        failure = self._writer.wait(_LOST_SECONDS if isinstance(error, WorkerLost) else None)
        if failure is not None:
            say_error(f"trainer: error: {failure}")
