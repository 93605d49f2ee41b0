"""Updates by devices that make them whole, with programs of their own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.extensions.vendors.programs import ProgramDevice, Programs
from trainer.model.task import Outcome
from trainer.update.inference import Inference
from trainer.update.optimiser import configured_preset, group_parameters
from trainer.update.step import LossScale, WeightStep
from trainer.update.strategy import Learner, Strategy, UpdateNumber, Worker, loss_and_sums


def make_programs(worker: Worker) -> Programs:
    """The programs of the worker's model and task.

    A device that adds gradients up does so over its replicas too, over which this trainer averages.
    """
    learner = Learner(worker)
    there = worker.workers.size * worker.device.replicas
    divisor = (worker.config.update.replicas or there) if worker.config.sums_micro_batches else 1

    def compute(batch: Batch) -> tuple[Tensor, Tensor]:
        outcome = learner(batch)
        return outcome.loss / divisor if divisor > 1 else outcome.loss, loss_and_sums(outcome)

    assert isinstance(worker.device, ProgramDevice)
    return worker.device.programs(worker.model, compute, 2 * (1 + len(worker.task.metrics)))


class ProgramInference(Inference):
    """Metrics from the device's program."""

    def __init__(self, worker: Worker, strategy: "WholeUpdates | None" = None) -> None:
        self._programs = strategy.programs if strategy else make_programs(worker)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        with self._programs.evaluating() as sums_of:

            def measure(batch: Batch) -> Outcome:
                sums = sums_of(batch)
                return Outcome(sums[0], sums[2:])

            yield measure

    def release(self) -> None:
        self._programs.release()


class ProgramStep(WeightStep):
    """The end of an update within a device's program: the optimiser's settings, and the count of updates."""

    def __init__(self, optimiser: torch.optim.Optimizer, scale: LossScale) -> None:
        self.applied = 0
        self.gradient_norm: Tensor | None = None
        self.optimiser, self.scale = optimiser, scale

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        raise AssertionError("the device's program ends its updates itself")


class WholeUpdates(Strategy):
    """Updates by the device's program, which has the weights and moments between them."""

    inference = ProgramInference

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        device = worker.device
        assert isinstance(device, ProgramDevice)  # its strategy is this one
        device.check_training(worker.workers.size)
        self._device = device
        self.programs = make_programs(worker)
        preset = configured_preset(worker.config)
        groups = group_parameters(preset, worker.model.named_parameters())
        self.step = ProgramStep(device.optimiser(preset, groups), device.loss_scale())

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        for group in self.step.optimiser.param_groups:
            group["lr"] = learning_rate
        values = self.programs.update(updates, self.step.optimiser, first.step, first.total)
        self.step.applied += len(updates)
        return values

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        self.programs.compile(updates, self.step.optimiser, first.total)

    def fetch(self) -> None:
        self.programs.fetch()

    def moments(self) -> dict[str, Tensor]:
        return self.programs.moments()

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self.step.applied = applied
        self.programs.load_moments(moments, applied)

    def check_accumulation(self, accumulation: int) -> None:
        self._device.check_accumulation(accumulation)

    def release(self) -> None:
        self.programs.release()
