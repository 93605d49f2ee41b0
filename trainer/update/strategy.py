"""The seam between the training loop and the devices: a strategy makes updates over all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.order import numbers
from trainer.devices.device import HOST, Device
from trainer.errors import StopRequested
from trainer.model.bert import check_memory
from trainer.model.headed import HeadedBert
from trainer.tasks.task import Outcome, Task
from trainer.update.make_step import make_step
from trainer.update.step import WeightStep
from trainer.workers.collective import Collective


@dataclass(frozen=True, kw_only=True, slots=True)
class Division:
    """This worker's copy of the model, and its stage of that copy, each out of so many.

    Copies are given different examples; the stages of a copy the same ones. strategy: that of a plan; None:
    there is no plan, and each worker has the whole model. recomputes: this worker's layers compute their
    activations again in the backward pass.
    """

    copy: int
    copies: int
    stage: int = 0
    stages: int = 1
    strategy: str | None = None
    recomputes: bool = False

    @property
    def is_split(self) -> bool:
        """True if no worker has the whole model."""
        return self.strategy not in (None, "replicated")

    @property
    def is_last_stage(self) -> bool:
        """True if this worker has the heads, and with them the results."""
        return self.stage == self.stages - 1


def whole(workers: Collective) -> Division:
    """The division of a model that each worker has as a whole."""
    return Division(copy=workers.rank, copies=workers.size)


class UpdateNumber(NamedTuple):
    """The place of an update in the run, counted from 0: phase, update of the phase, update of all phases."""

    phase: int
    step: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Everything that one worker makes an update with. The model is on the device."""

    config: Config
    device: Device
    workers: Collective
    division: Division
    task: Task
    model: HeadedBert


def seed_micro_batch(worker: Worker, at: UpdateNumber, number: int) -> None:
    """Make the model draw the dropout of this copy's micro-batch ``number`` of an update.

    The seeds are functions of the run's seed, the update, the micro-batch and the part of the model. So
    dropout is the same after a resume, for any number of workers, and however the model is split. The parts
    of the model (``Bert.seeds``) have a seed each; on devices that compile them together they have one for
    all, that of part 0.
    """
    division, device, bert = worker.division, worker.device, worker.model.bert
    micro_batch = division.copy + division.copies * number
    seeds = part_seeds(worker.config.data.seed, at, micro_batch, len(bert.encoder.layer) + 2)
    if not (device.own_step or device.compiles):
        bert.seeds = lambda part: device.seed(seeds[part])
    else:
        device.seed(seeds[0])


def part_seeds(seed: int, at: UpdateNumber, micro_batch: int, parts: int) -> list[int]:
    """The seed of each part's dropout in a micro-batch, by the run's seed."""
    found = numbers(parts, seed, "dropout", at.phase, at.step, micro_batch)
    return [int(number) >> 1 for number in found]


def loss_divisor(config: Config, count: int, workers: int) -> float:
    """The divisor of the loss of each of a worker's ``count`` micro-batches in an update.

    The workers' sums of gradients are averaged afterwards. Where micro-batches are added up, replicas says
    over how many workers; there may be another number, as one may do the work of several.
    """
    is_sum = config.ipu.reduction_type == "sum"
    return (config.update.replicas or workers) / workers if is_sum else count


class Learner(nn.Module):
    """The model with its loss, so that forward pass and loss are compiled as one."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.model = worker.model
        self._task = worker.task

    def forward(self, batch: Batch) -> Outcome:
        return self._task.outcome(self.model, batch)


class Strategy:
    """Updates of a model that a worker alone holds as a whole, in fp32.

    Subclasses share the work with other workers (``trainer.update.replicated``), divide the model, or have
    devices that make whole updates. Weights and moments have the same bits on all workers.
    step: the end of each update, with the loss scale and the counts of updates. inference: the strategy's
    kind of ``trainer.update.inference.Inference``; None: the usual one. exchanges_each: the workers exchange
    something in each micro-batch of an update, not in the last one alone.
    """

    inference: Callable[..., Any] | None = None
    exchanges_each = False

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.learner = Learner(worker)
        worker.device.compile(self.learner)
        self.step: WeightStep = make_step(worker.config, worker.device, worker.model.named_parameters())

    @staticmethod
    def build(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
        """This worker's part of a model, with first weights from torch's generator, on the device.

        model: the whole one on the meta device, which is changed.
        """
        check_memory(model.count_weights())
        model.to_empty(device=HOST)
        model.draw_weights()
        model.bert.recomputes = division.recomputes
        return device.place(model)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        """Change the weights once for each update, which is a sequence of micro-batches.

        Returns for each update the sums and weights of the loss and of the task's metrics on this worker
        (as ``loss_and_sums`` gives them, added up), still on the device. StopRequested leaves the weights as
        they are, without gradients.
        """
        (batches,) = updates
        try:
            values = self._accumulate(batches, first)
        except StopRequested:
            self.step.optimiser.zero_grad()
            raise
        finally:
            self.worker.model.bert.seeds = None
        self.step.take(self._gradients(), learning_rate, first.step + 1)
        self.step.optimiser.zero_grad()
        return [values]

    def _gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self.worker.model.parameters() if weight.grad is not None]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        workers, values = self.worker.workers, list[Tensor]()
        divisor = loss_divisor(self.worker.config, len(batches), workers.size)
        for number, batch in enumerate(batches):
            is_last = number == len(batches) - 1
            workers.stopping.check(exchanges=is_last or self.exchanges_each)
            seed_micro_batch(self.worker, at, number)
            outcome = self._forward(batch)
            self._backward(outcome.loss, divisor, is_last)
            values.append(loss_and_sums(outcome))
        return torch.stack(values).sum(0)

    def _forward(self, batch: Batch) -> Outcome:
        return self.worker.device.forward(self.learner, batch)

    def _backward(self, loss: Tensor, divisor: float, is_last: bool) -> None:
        """Add the gradients of a micro-batch's loss, over the divisor, to those of the weights."""
        self.step.scale.scale(loss / divisor).backward()  # type: ignore[no-untyped-call]
        self.worker.device.after_backward()

    def fetch(self) -> None:
        """Copy the newest weights into the model's parameters, where the device keeps them elsewhere."""

    def moments(self) -> dict[str, Tensor]:
        """The optimiser's tensors as KIND/NAME, without its counts of updates."""
        return {
            f"{kind}/{name}": value
            for name, weight in self.worker.model.named_parameters()
            for kind, value in self.step.optimiser.state.get(weight, {}).items()
            if isinstance(value, Tensor) and kind != "step"
        }

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        """Set the optimiser's tensors (KIND/NAME) and its count of updates."""
        self.step.applied = applied
        weights = dict(self.worker.model.named_parameters())
        states = self.step.optimiser.state
        for key, moment in moments.items():
            kind, _, name = key.partition("/")
            states[weights[name]][kind] = moment

    def check_accumulation(self, accumulation: int) -> None:
        """SettingsError where so few micro-batches of an update cannot be trained with."""

    def release(self) -> None:
        """Free the device for the next phase. No update may follow."""


def loss_and_sums(outcome: Outcome) -> Tensor:
    """The loss as a sum of weight 1, then the sums of the task's metrics."""
    loss = outcome.loss.detach().float()
    return torch.cat([torch.stack([loss, torch.ones_like(loss)]), outcome.sums.float()])


def named_means(task: Task, values: Sequence[float]) -> dict[str, float]:
    """The mean of "loss" and of each metric of the task, from the values of ``loss_and_sums``."""
    means = (total / max(weight, 1e-5) for total, weight in zip(values[::2], values[1::2], strict=True))
    return dict(zip(("loss", *task.metrics), means, strict=True))
