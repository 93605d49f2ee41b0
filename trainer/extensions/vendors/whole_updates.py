"""Updates by devices that make them whole, with programs of their own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from trainer.config.update import find_preset
from trainer.data.batches import Batch
from trainer.extensions.vendors.programs import Programs
from trainer.optim.presets import group_parameters
from trainer.strategies.kinds import StrategyKind
from trainer.strategies.optimiser import make_scale, optimiser_settings
from trainer.strategies.reduction import replica_count
from trainer.strategies.strategy import (
    Inference,
    Learner,
    Measured,
    Strategy,
    UpdateNumber,
    Worker,
    loss_and_sums,
)


def make_programs(worker: Worker) -> Programs:
    """The programs of the worker's model and task.

    A device that adds gradients up does so over its replicas too, over which this trainer averages.
    """
    learner = Learner(worker)
    there = worker.workers.size * worker.device.replicas
    divisor = replica_count(worker.config, there) if worker.config.sums_micro_batches else 1

    def compute(batch: Batch) -> tuple[Tensor, Tensor]:
        outcome = learner(batch)
        return outcome.loss / divisor if divisor > 1 else outcome.loss, loss_and_sums(outcome)

    device: Any = worker.device  # one that has programs: its strategy is this one
    programs: Programs = device.programs(worker.model, compute, 2 * (1 + len(worker.task.metrics)))
    return programs


class ProgramInference(Inference):
    """Metrics from the device's program."""

    def __init__(self, worker: Worker, programs: Programs | None = None) -> None:
        self._programs = programs or make_programs(worker)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Measured]]:
        with self._programs.evaluating() as sums_of:
            yield lambda batch: Measured(sums_of(batch)[2:], None)  # without the loss

    def release(self) -> None:
        self._programs.release()


class WholeUpdates(Strategy):
    """Updates by the device's program, which has the weights and moments between them."""

    def __init__(self, worker: Worker) -> None:
        device, config = worker.device, worker.config
        self._applied = 0
        device.check_training(worker.workers.size)
        self._programs = make_programs(worker)
        self.inference = ProgramInference(worker, self._programs)
        self.scale = make_scale(config, device)
        preset = find_preset(config.update.optimiser, **optimiser_settings(config))
        self.optimiser = device.optimiser(preset, group_parameters(preset, worker.model.named_parameters()))

    @property
    def applied(self) -> int:
        return self._applied

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        values = self._programs.update(updates, self.optimiser, first.step, first.total)
        self._applied += len(updates)
        return values

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        self._programs.compile(updates, self.optimiser, first.total)

    def fetch(self) -> None:
        self._programs.fetch()

    def moments(self) -> dict[str, Tensor]:
        return self._programs.moments()

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self._applied = applied
        self._programs.load_moments(moments, applied)


WHOLE_UPDATES = StrategyKind(WholeUpdates, ProgramInference)
