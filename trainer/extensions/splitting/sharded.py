"""Sharded training: each worker holds a part of every weight, and gathers a layer where it computes it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from trainer.collectives.collective import Collective
from trainer.config.update import find_preset
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
from trainer.extensions.splitting.split_strategy import Part, SplitInference, SplitStrategy
from trainer.model.bert import HeadedBert
from trainer.optim.optimiser import Optimiser
from trainer.optim.presets import group_parameters
from trainer.strategies.division import Division
from trainer.strategies.dropout import seed_micro_batch
from trainer.strategies.kinds import StrategyKind
from trainer.strategies.optimiser import make_scale, optimiser_settings
from trainer.strategies.reduction import loss_divisor
from trainer.strategies.replicated import sum_type
from trainer.strategies.step import make_step
from trainer.strategies.strategy import (
    Learner,
    Measured,
    UpdateNumber,
    Worker,
    loss_and_sums,
)


def build_sharded(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """This worker's rows of each weight on the device, with first weights, of a model on the meta device."""
    assert division.plan is not None
    with workers.naming_lost_workers():
        mesh, precision = copies_mesh(device, division), device.config.update.precision
        shard_(model, mesh, precision, sum_type(device.config))
    model.to_empty(device=device.torch_device)
    fill_shards(model, model.first_weights())
    model.bert.recomputes = division.plan.stages[division.stage].recomputes
    return device.place(model)


class ShardedInference(SplitInference):
    """Metrics by a model that all workers gather together, layer by layer: each measures as many batches."""

    exchanges = True

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Measured]]:
        workers = self._worker.workers
        with super().evaluating() as measure:

            def together(batch: Batch) -> Measured:
                with workers.naming_lost_workers():
                    return measure(batch)

            yield together
        gather_no_more(self._worker.model)

    def weight_parts(self) -> Sequence[Part]:
        """The weights that this worker holds."""
        return Held(self._worker.model).weight_parts()


class Sharded(SplitStrategy):
    """Updates by PyTorch's autograd on a model divided by FSDP2; the optimiser changes the own rows.

    Each micro-batch's gradients are averaged over the workers while its backward pass runs, and added up in
    the rows: no worker ever has the gradients of the whole model.
    """

    def __init__(self, worker: Worker) -> None:
        config, device = worker.config, worker.device
        self._worker = worker
        self._device = device
        self._workers = worker.workers
        self._learner = Learner(worker)
        self.inference = ShardedInference(worker, self._learner)
        self.scale = make_scale(config, device)
        self._held = Held(worker.model)
        preset = find_preset(config.update.optimiser, **optimiser_settings(config))
        made = device.optimiser(preset, group_parameters(preset, self._held.named_parameters()))
        assert isinstance(made, Optimiser)
        self.optimiser = made
        self.optimiser.norms = ShardNorms(self._held.group)
        self.optimiser.sizes = self._held.sizes()
        self._step = make_step(config, device, self.optimiser, self.scale)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        try:
            with self._workers.naming_lost_workers():
                values = self._accumulate(batches, first)
                self._step.take(self._held.take_gradients(), learning_rate, first.step + 1)
        finally:
            self._held.drop_gradients()
        self._device.after_step()
        return [values]

    def _accumulate(self, batches: Sequence[Batch], at: UpdateNumber) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad.

        With reduction_type sum their sum.
        """
        values = list[Tensor]()
        divisor = loss_divisor(self._worker.config, len(batches), self._workers.size)
        for number, batch in enumerate(batches):
            self._workers.stopping.check(exchanges=True)
            seed_micro_batch(self._worker, at, number)
            outcome = self._device.forward(self._learner, batch)
            self.scale.scale(outcome.loss / divisor).backward()  # type: ignore[no-untyped-call]
            self._device.after_backward()
            values.append(loss_and_sums(outcome))
        return torch.stack(values).sum(0)

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        raise AssertionError("a sharded model is not compiled")

    def weight_parts(self) -> Sequence[Part]:
        return self._held.weight_parts()

    def moment_parts(self) -> Sequence[Part]:
        return self._held.moment_parts(self.optimiser)

    def set_applied(self, applied: int) -> None:
        self._step.applied = applied
        for group in self.optimiser.param_groups:
            group["step"] = applied


SHARDED = StrategyKind(Sharded, ShardedInference, build_sharded)
