"""One update, from its micro-batches to the new weights: forward, backward, average, clip, step.

A strategy makes updates over all workers. It is the seam between the training loop and the devices.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.data.batches import Batch
from trainer.data.order import numbers
from trainer.devices.device import HALVES, HOST, Device
from trainer.errors import StopRequested
from trainer.model.bert import check_memory
from trainer.model.headed import HeadedBert, Predictions
from trainer.tasks.task import Outcome, Task
from trainer.update.averaging import WorkerAverages
from trainer.update.half_weights import HalfWeights
from trainer.update.loss_shares import loss_divisors
from trainer.update.make_step import make_step
from trainer.update.micro_batch_sums import MicroBatchSums
from trainer.update.row_norms import RowNorms, has_row_norms, tables_of
from trainer.update.step import WeightStep
from trainer.update.worker import Division, Worker
from trainer.workers.collective import Collective


class UpdateNumber(NamedTuple):
    """The place of an update in the run, counted from 0: phase, update of the phase, update of all phases."""

    phase: int
    step: int
    total: int


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


class Learner(nn.Module):
    """The model with its loss, so that forward pass and loss are compiled as one."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.model = worker.model
        self._task = worker.task

    def forward(self, batch: Batch) -> Outcome:
        return self._task.outcome(self.model, batch)


def set_softmax(worker: Worker) -> None:
    """Let padding of the vocabulary take part in the softmax of masked words, where it is configured."""
    heads = getattr(worker.model, "cls", None)  # a stage of a divided model may have none
    words = getattr(heads, "predictions", None)
    if worker.config.update.softmax_over_padding and isinstance(words, Predictions):
        words.take_padding()


class Strategy:
    """Updates of a model that each worker holds as a whole: one worker or several, in any precision.

    Weights and moments have the same bits on all workers. Subclasses divide the model, or have devices that
    make whole updates.

    step: the end of each update, with the loss scale and the counts of updates. inference: the strategy's
    class of ``trainer.update.inference.Inference``; None: the usual one. exchanges_each: the workers exchange
    something in each micro-batch of an update, not in the last one alone.
    """

    inference: Callable[..., Any] | None = None
    exchanges_each = False
    _half_weights: HalfWeights | None = None
    _averages: WorkerAverages | None = None
    _row_norms: RowNorms | None = None
    _sums_apart = False

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        set_softmax(worker)
        self.learner = Learner(worker)
        worker.device.compile(self.learner)
        self.step: WeightStep = make_step(worker.config, worker.device, worker.model.named_parameters())
        model, device, keys = worker.model, worker.device, worker.config.update
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        leaves = self._weights
        # In 16 bits the weights are cast once per update, not in each matrix product. Not where layers are
        # computed again in the backward pass: that would find the fp32 weights themselves.
        if keys.precision != "fp32" and device.casts_once and not model.bert.recomputes:
            self._half_weights = HalfWeights(self.learner, HALVES[keys.precision])
            leaves = self._half_weights.leaves(self._weights)
        if worker.workers.size > 1:
            self._averages = WorkerAverages(worker, self._weights, leaves)
        self.exchanges_each = not worker.config.workers.allreduce_post_accumulation
        if has_row_norms(worker.config, device, worker.workers.size):
            self._row_norms = RowNorms(tables_of(model, worker.config))
            self.step.optimiser.norms = self._row_norms
        # Where each micro-batch is clipped or averaged by itself, its gradients are added up elsewhere.
        self._sums_apart = self.exchanges_each or keys.clips_micro_batches

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
            # Forward and backward passes leave the mean gradient of all workers in each weight's grad.
            values = self._accumulate(batches, first)
        except StopRequested:
            self.step.optimiser.zero_grad()
            raise
        finally:
            self.worker.model.bert.seeds = None
        # Clip by the global norm, then the optimiser's step at the schedule's rate.
        self.step.take(self._gradients(), learning_rate, first.step + 1)
        self.step.optimiser.zero_grad()
        return [values]

    def _gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self.worker.model.parameters() if weight.grad is not None]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum. Returns the sums of ``loss_and_sums``.
        """
        worker = self.worker
        if self._half_weights:
            self._half_weights.refresh()
        sums = None
        if self._sums_apart:
            sums = MicroBatchSums(worker, self._weights, self.step, self._row_norms)
        if self._averages:
            self._averages.begin()
        values = list[Tensor]()
        # The loss of each of 4 micro-batches is divided by 4, so that the gradients' sum is their mean. Over
        # the words of 4 micro-batches with 6, 2, 4 and 4 masked ones it is divided by 16/6, 8, 4 and 4.
        divisors = loss_divisors(worker, batches, worker.workers.size)
        for number, (batch, divisor) in enumerate(zip(batches, divisors, strict=True)):
            is_last = number == len(batches) - 1
            worker.workers.stopping.check(exchanges=is_last or self.exchanges_each)
            seed_micro_batch(worker, at, number)
            outcome = self._forward(batch)
            # The last backward pass averages each bucket of gradients over the workers as it is complete.
            with self._averages.last_backward() if self._averages and is_last else nullcontext():
                self._backward(outcome.loss, divisor)
            if sums:
                sums.add(divisor)
            values.append(loss_and_sums(outcome))
        if sums:
            sums.finish()
        if self._averages:
            self._averages.finish(self._gradients())
        return torch.stack(values).sum(0)

    def _forward(self, batch: Batch) -> Outcome:
        outcome: Outcome = self.worker.device.forward(self._half_weights or self.learner, batch)
        return outcome

    def _backward(self, loss: Tensor, divisor: float | Tensor) -> None:
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
