"""An update from micro-batches to new weights: forward passes, backward passes, averages,
clipping, optimiser step.

A strategy makes updates over all workers. The training loop knows only the interface of the class
``Strategy``. Some devices, and models that are divided among workers, have other strategies.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.data.batches import Batch
from trainer.data.order import draw_numbers
from trainer.devices.device import HALVES, HOST, Device
from trainer.errors import StopRequested
from trainer.model.bert import check_memory
from trainer.model.headed import HeadedBert, MaskedWordHead
from trainer.tasks.task import Outcome, Task
from trainer.update.averaging import WorkerAverages
from trainer.update.half_weights import HalfWeights
from trainer.update.learner import Learner
from trainer.update.loss_shares import compute_loss_divisors
from trainer.update.make_step import make_optimiser_step
from trainer.update.micro_batch_sums import MicroBatchSums
from trainer.update.row_norms import RowNorms, find_row_tables, has_row_norms
from trainer.update.step import OptimiserStep
from trainer.update.worker import ModelShare, Worker
from trainer.workers.collective import Collective


class UpdateNumber(NamedTuple):
    """Number of an update.

    phase: phase of the run, 1 or 2.
    update: number of the update in its phase, from 0.
    seed_offset: number that can be added to a seed and that differs between the updates of a run. It is
        ``update`` plus the number in the name of the checkpoint that the phase started from.
    """

    phase: int
    update: int
    seed_offset: int


def seed_micro_batch(worker: Worker, at: UpdateNumber, number: int) -> None:
    """Seed the dropout of a micro-batch.

    Each seed is a function of the run's seed, the update, the micro-batch and the part of the model
    (embeddings, each layer, heads). So dropout is the same after a resume, for any number of workers, and
    however the model is divided.
    at: number of the update.
    number: index of the micro-batch among this worker's micro-batches of the update.
    """
    division, device, bert = worker.model_share, worker.device, worker.model.bert
    # Micro-batches are numbered over all copies of the model. With 2 copies and index 1, copy 0 computes
    # micro-batch 2 and copy 1 computes micro-batch 3.
    micro_batch = division.copy + division.copies * number
    seeds = draw_part_seeds(worker.config.data.seed, at, micro_batch, len(bert.encoder.layer) + 2)
    # The model sets a seed before each part. If the device runs all parts as one graph, a seed between the
    # parts would break the graph. All parts then share the first seed.
    if not (device.ends_updates or (device.compiles and device.compiles_whole)):
        bert.seeds = lambda part: device.seed(seeds[part])
    else:
        device.seed(seeds[0])


def draw_part_seeds(seed: int, at: UpdateNumber, micro_batch: int, parts: int) -> list[int]:
    """Return a seed for the dropout of each part of the model (embeddings, each layer,
    heads) in a micro-batch.

    seed: the run's seed.
    at: number of the update.
    micro_batch: number of the micro-batch, counted over all copies of the model.
    parts: number of parts.
    """
    found = draw_numbers(parts, seed, "dropout", at.phase, at.update, micro_batch)
    return [int(number) >> 1 for number in found]


def set_softmax_padding(worker: Worker) -> None:
    """Let the model's softmax over words include the vocabulary's padding, if that is configured."""
    heads = getattr(worker.model, "cls", None)  # None for a stage without heads
    words = getattr(heads, "predictions", None)
    if worker.config.update.softmax_over_padding and isinstance(words, MaskedWordHead):
        words.include_padding()


class Strategy:
    """Strategy for a model that each worker holds as a whole. It makes updates with one or several workers.

    Weights and moments have the same bits on all workers. Subclasses are for models that are divided among
    workers, and for devices that make whole updates.
    optimiser_step: object that clips and changes the weights at the end of each update. It also has the loss
        scale and the counts of updates.
    inference: class of the object that evaluates the model. None means
        ``trainer.update.inference.Inference``.
    exchanges_each: whether workers exchange gradients after each micro-batch, and not only once per update.
    """

    inference: Callable[..., Any] | None = None
    exchanges_each = False
    _half_weights: HalfWeights | None = None
    _averages: WorkerAverages | None = None
    _row_norms: RowNorms | None = None
    _sums_apart = False

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        set_softmax_padding(worker)
        self.learner = Learner(worker)
        worker.device.compile(self.learner)
        self.optimiser_step: OptimiserStep = make_optimiser_step(
            worker.config, worker.device, worker.model.named_parameters()
        )
        model, device, keys = worker.model, worker.device, worker.config.update
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        leaves = self._weights
        # Cast the weights to 16 bits once per update, and not in each matrix product. This cannot be done if
        # layers are computed again in the backward pass, because that would use the fp32 weights.
        # HalfWeights must be built before WorkerAverages. Both register a hook on the 16-bit copies, and
        # hooks run in the order of registration. The gradient must have been added to the fp32 weight's
        # gradient before a bucket counts it as complete.
        if keys.precision != "fp32" and device.casts_once and not model.bert.recomputes:
            self._half_weights = HalfWeights(self.learner, HALVES[keys.precision])
            leaves = self._half_weights.leaves(self._weights)
        if worker.collective.size > 1:
            self._averages = WorkerAverages(worker, self._weights, leaves)
        self.exchanges_each = not worker.config.workers.allreduce_post_accumulation
        if has_row_norms(worker.config, device, worker.collective.size):
            self._row_norms = RowNorms(find_row_tables(model, worker.config))
            self.optimiser_step.optimiser.norms = self._row_norms
        # If each micro-batch is clipped or averaged separately, its gradients are added up in MicroBatchSums.
        self._sums_apart = self.exchanges_each or keys.clips_micro_batches

    @staticmethod
    def build(model: HeadedBert, device: Device, workers: Collective, division: ModelShare) -> HeadedBert:
        """Return this worker's part of a model on the device, with random weights from torch's generator.

        model: the whole model on the meta device, that is, without values. It is changed.
        division: stage and copy of the model that this worker has.
        """
        check_memory(model.count_weights())
        model.to_empty(device=HOST)
        model.draw_weights()
        model.bert.recomputes = division.recomputes
        return device.place(model)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        """Make updates.

        Each update changes the weights once, by the gradients of a sequence of micro-batches.

        Returns for each update the sums and weights of the loss and of the task's metrics on this
        worker. They have the form of ``join_loss_and_sums``, are added over the micro-batches, and are
        still on the device.
        updates: micro-batches of each update.
        learning_rate: learning rate of these updates.
        first: number of the first of these updates.
        Raises StopRequested if a signal asks to stop. The weights are then unchanged, and
        there are no gradients.
        """
        (batches,) = updates
        try:
            # Make the forward and backward passes. Afterwards each weight's grad is the mean gradient over
            # all workers.
            values = self._accumulate(batches, first)
        except StopRequested:
            self.optimiser_step.optimiser.zero_grad()
            raise
        finally:
            self.worker.model.bert.seeds = None
        # Clip by the norm of all gradients, then let the optimiser change the weights with the schedule's
        # learning rate. All workers have the same averaged gradients, so their weights stay equal in every
        # bit.
        self.optimiser_step.take(self._list_gradients(), learning_rate, first.update + 1)
        self.optimiser_step.optimiser.zero_grad()
        return [values]

    def _list_gradients(self) -> list[Tensor]:
        """Return the gradients of all weights that have one."""
        return [weight.grad for weight in self.worker.model.parameters() if weight.grad is not None]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Run the forward and backward passes of an update's micro-batches, and average the
        gradients over the workers.

        Each weight's ``grad`` is then the mean of its gradients, multiplied by the loss scale. With
        reduction_type "sum" it is the sum instead of the mean. Returns the result of ``join_loss_and_sums``,
        added over the micro-batches.
        at: number of the update.
        """
        worker = self.worker
        if self._half_weights:
            self._half_weights.refresh()
        sums = None
        if self._sums_apart:
            sums = MicroBatchSums(worker, self._weights, self.optimiser_step, self._row_norms)
        if self._averages:
            self._averages.begin()
        values = list[Tensor]()
        # With 4 micro-batches each loss is divided by 4, so that the sum of the gradients is their mean. If
        # the loss is averaged over words, micro-batches with 6, 2, 4 and 4 masked words are divided by 16/6,
        # 16/2, 16/4 and 16/4.
        divisors = compute_loss_divisors(worker, batches, worker.collective.size)
        for number, (batch, divisor) in enumerate(zip(batches, divisors, strict=True)):
            is_last = number == len(batches) - 1
            # A signal may stop the run here, in the middle of an update. If the workers exchange something
            # before the next check, all of them must agree to stop here.
            worker.collective.stopping.check(exchanges=is_last or self.exchanges_each)
            seed_micro_batch(worker, at, number)
            outcome = self._forward(batch)
            # During the last backward pass, the workers exchange each bucket of gradients as soon as it is
            # complete. Earlier passes only add to the gradients, so an update needs only one exchange.
            with self._averages.last_backward() if self._averages and is_last else nullcontext():
                self._backward(outcome.loss, divisor)
            if sums:
                sums.add(divisor)
            values.append(join_loss_and_sums(outcome))
        # Average the gradients now, unless this was done during the backward pass.
        if sums:
            sums.finish()
        if self._averages:
            self._averages.finish(self._list_gradients())
        return torch.stack(values).sum(0)

    def _forward(self, batch: Batch) -> Outcome:
        """Return the outcome (loss and metrics) of a micro-batch."""
        outcome: Outcome = self.worker.device.forward(self._half_weights or self.learner, batch)
        return outcome

    def _backward(self, loss: Tensor, divisor: float | Tensor) -> None:
        """Compute the gradients of ``loss / divisor`` and add them to the weights' ``grad``."""
        self.optimiser_step.scale.scale(loss / divisor).backward()  # type: ignore[no-untyped-call]
        self.worker.device.after_backward()

    def fetch(self) -> None:
        """Copy the newest weights into the model's parameters.

        This is needed if the device keeps the weights elsewhere.
        """

    def moments(self) -> dict[str, Tensor]:
        """Return the optimiser's moments as {"exp_avg/WEIGHT": tensor, ...}, without its counts."""
        return {
            f"{kind}/{name}": value
            for name, weight in self.worker.model.named_parameters()
            for kind, value in self.optimiser_step.optimiser.state.get(weight, {}).items()
            if isinstance(value, Tensor) and kind != "step"
        }

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        """Set the optimiser's moments and its count of updates.

        moments: {"exp_avg/WEIGHT": tensor, ...}, as the method ``moments`` returns them.
        applied: number of updates by which these moments were made.
        """
        self.optimiser_step.applied = applied
        weights = dict(self.worker.model.named_parameters())
        states = self.optimiser_step.optimiser.state
        for key, moment in moments.items():
            kind, _, name = key.partition("/")
            states[weights[name]][kind] = moment

    def check_accumulation(self, accumulation: int) -> None:
        """Raise SettingsError if this strategy needs more than ``accumulation`` micro-batches per update."""

    def release(self) -> None:
        """Free the memory on the device, for the next phase of the run. No update may follow."""


def join_loss_and_sums(outcome: Outcome) -> Tensor:
    """Return the loss as a sum with weight 1, followed by the sum and the weight of each
    of the task's metrics.
    """
    # The result is [loss, 1, sum of metric 1, weight of metric 1, ...]. When such results of several
    # micro-batches are added, each mean is still its sum divided by its weight.
    loss = outcome.loss.detach().float()
    return torch.cat([torch.stack([loss, torch.ones_like(loss)]), outcome.sums.float()])


def compute_means(task: Task, values: Sequence[float]) -> dict[str, float]:
    """Return the mean of the loss, under the name "loss", and of each metric of the task.

    values: sums and weights, in the order of ``join_loss_and_sums``.
    """
    means = (total / max(weight, 1e-5) for total, weight in zip(values[::2], values[1::2], strict=True))
    return dict(zip(("loss", *task.metrics), means, strict=True))
