"""Sharded training: each worker holds a part of every weight, and gathers a layer where it computes it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from trainer.collectives.collective import Collective
from trainer.data.batches import Batch
from trainer.devices.device import Device
from trainer.extensions.splitting.sharding import (
    Held,
    ShardNorms,
    copies_mesh,
    fill_shards,
    gather_no_more,
    shard_,
)
from trainer.extensions.splitting.split_strategy import (
    SplitInference,
    SplitStrategy,
    WeightPart,
    planned_stage,
)
from trainer.model.bert import HeadedBert
from trainer.model.task import Outcome
from trainer.update.averaging import sum_type
from trainer.update.step import make_step
from trainer.update.strategy import (
    Division,
    Learner,
    UpdateNumber,
    Worker,
    loss_and_sums,
    loss_divisor,
    seed_micro_batch,
)


def build_sharded(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """This worker's rows of each weight on the device, with first weights, of a model on the meta device."""
    with workers.naming_lost_workers():
        mesh, precision = copies_mesh(device, division), device.config.update.precision
        shard_(model, mesh, precision, sum_type(device.config))
    model.to_empty(device=device.torch_device)
    fill_shards(model, model.first_weights())
    model.bert.recomputes = planned_stage(division).recomputes
    return device.place(model)


class ShardedInference(SplitInference):
    """Metrics by a model that all workers gather together, layer by layer: each measures as many batches."""

    exchanges = True

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        workers = self._worker.workers
        with super().evaluating() as measure:

            def together(batch: Batch) -> Outcome:
                with workers.naming_lost_workers():
                    return measure(batch)

            yield together
        gather_no_more(self._worker.model)

    def weight_parts(self) -> Sequence[WeightPart]:
        """The weights that this worker holds."""
        return Held(self._worker.model).weight_parts()


class Sharded(SplitStrategy):
    """Updates by PyTorch's autograd on a model divided by FSDP2. The optimiser changes the worker's own rows.

    Each micro-batch's gradients are averaged over the workers while its backward pass runs, and added up in
    the rows: no worker ever has the gradients of the whole model.
    """

    inference = ShardedInference
    build = staticmethod(build_sharded)

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.learner = Learner(worker)
        self._device = worker.device
        self._workers = worker.workers
        self._held = Held(worker.model)
        self.step = make_step(worker.config, worker.device, self._held.named_parameters())
        self.optimiser.norms = ShardNorms(self._held.group)
        self.optimiser.sizes = self._held.sizes()

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        try:
            with self._workers.naming_lost_workers():
                values = self._accumulate(batches, first)
                self.step.take(self._held.take_gradients(), learning_rate, first.step + 1)
        finally:
            self._held.drop_gradients()
        return [values]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        values = list[Tensor]()
        divisor = loss_divisor(self.worker.config, len(batches), self._workers.size)
        for number, batch in enumerate(batches):
            self._workers.stopping.check(exchanges=True)
            seed_micro_batch(self.worker, at, number)
            outcome = self._device.forward(self.learner, batch)
            self.step.scale.scale(outcome.loss / divisor).backward()  # type: ignore[no-untyped-call]
            self._device.after_backward()
            values.append(loss_and_sums(outcome))
        return torch.stack(values).sum(0)

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        raise AssertionError("a sharded model is not compiled")

    def weight_parts(self) -> Sequence[WeightPart]:
        return self._held.weight_parts()

    def moment_parts(self) -> Sequence[WeightPart]:
        return self._held.moment_parts(self.optimiser)
