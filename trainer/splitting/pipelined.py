"""Pipelined training: each worker has some layers, and micro-batches pass from stage to stage."""

from collections.abc import Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from bertdata.errors import BertDataError
from trainer.config.schedules.form import Preset
from trainer.data.batches import Batch
from trainer.model.headed import HeadedBert
from trainer.splitting.held import TIED, is_second
from trainer.splitting.split_strategy import SplitInference, SplitStrategy
from trainer.splitting.stage import WorkerStage, make_schedule, token_rows, with_same_length
from trainer.splitting.subgroups import StageGroups, Subgroup
from trainer.tasks.task import Outcome
from trainer.update.averaging import sum_type, sync_weights
from trainer.update.loss_shares import loss_divisors
from trainer.update.optimiser import Norms, configured_preset, group_parameters
from trainer.update.strategy import UpdateNumber
from trainer.update.worker import Worker

_KEPT_SCHEDULES = 4
"""Schedules of other shapes that are kept; each has memory for the tensors that it receives."""


class PipelinedInference(SplitInference):
    """Metrics by all stages of a copy, which pass the batches on. Only the last stage has results."""

    def __init__(self, worker: Worker, strategy: "Pipelined | None" = None) -> None:
        """strategy: that of the training, whose groups are used. None: there is none."""
        self._worker = worker
        self._groups = strategy.groups if strategy else StageGroups(worker)
        self._stage = WorkerStage(worker)

    def _measure(self, batch: Batch) -> Outcome:
        worker, stage, pipeline = self._worker, self._stage, self._groups.pipeline
        place = worker.division.stage
        received = () if stage.is_first else stage.blanks(token_rows(batch), worker.device.torch_device)
        for tensor in received:
            pipeline.receive(tensor, place - 1)
        if stage.is_last:
            return worker.device.forward(lambda moved: stage.outcome(received, moved), batch)
        for tensor in worker.device.forward(lambda moved: stage.encode(received, moved), batch):
            pipeline.send(tensor.contiguous(), place + 1)
        return Outcome(torch.zeros(()), torch.zeros(2 * len(worker.task.metrics)))

    def release(self) -> None:
        self._groups.close()


class Pipelined(SplitStrategy):
    """Updates by torch.distributed.pipelining. The copies of a stage average their gradients.

    The optimiser changes the stage's own weights. Word embeddings that the heads use are on the first and
    on the last stage: both have the sum of their gradients, and so make the same steps.
    """

    inference = PipelinedInference

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        self.groups = StageGroups(worker)
        self.optimiser.norms = StageNorms(worker, self.groups.pipeline, self.held.norms)
        self._stage = WorkerStage(worker, self.step.scale)
        make = partial(make_schedule, worker, self._stage, self.groups.pipeline)
        self._find_schedule = lru_cache(_KEPT_SCHEDULES)(make)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        worker = self.worker
        with worker.workers.naming_lost_workers():
            self._stage.divisors = loss_divisors(worker, batches, worker.division.copies)
            values = self._run_stages(with_same_length(batches, worker.device.prepare), first)
            worker.device.after_backward()
            self.step.take(self._average(), learning_rate, first.step + 1)
        self.held.drop_gradients()
        none = torch.zeros(2 + 2 * len(worker.task.metrics), device=worker.device.torch_device)
        return [torch.stack(values).sum(0) if values else none]

    def _run_stages(self, batches: Sequence[Batch], at: UpdateNumber) -> list[Tensor]:
        """Leave the sum of the micro-batches' gradients, times the loss scale, in the weights' grad.

        batches: as many tokens each. Returns of the last stage ``loss_and_sums`` of each, of others nothing.
        """
        stage, numbers = self._stage, torch.arange(len(batches))
        stage.batches, stage.at, stage.values = batches, at, []
        schedule = self._find_schedule(token_rows(batches[0]), len(batches))
        target = {"target": numbers} if stage.is_last else {}
        try:
            schedule.step(number=numbers, return_outputs=False, **target)
        except RuntimeError as error:  # it hides those of the module
            if isinstance(error.__cause__, BertDataError):
                raise error.__cause__ from None
            raise
        finally:
            stage.batches = ()
        return stage.values

    def _average(self) -> list[Tensor]:
        """The gradients, averaged over the copies. The tied weight's is the sum of both stages' gradients.

        Two summands in either order have one sum, so that both stages have the same bits.
        """
        config, own = self.worker.config, self.held.parameters
        gradients = self.held.take_gradients()
        if not self.held.is_sharded:  # else each micro-batch's were averaged in its backward pass
            self.groups.copies.average(gradients, sum_type(config))
            sync_weights(self.groups.copies.average, own.values(), config.workers.force_weight_sync)
        if self.groups.tied.size:
            tied = own[TIED].grad
            assert tied is not None
            self.groups.tied.sum(tied)
        return gradients

    def release(self) -> None:
        self.groups.close()


class StageNorms(Norms):
    """Norms over the stages of a pipeline, each of which has whole weights or shards of them.

    The norms of all weights are brought together in the order of the whole model, so that the norm of all
    has the bits that one process gives for the same gradients.
    """

    def __init__(self, worker: Worker, group: Subgroup, of_weights: Norms) -> None:
        """of_weights: norms of this stage's weights."""
        self._group, self._of_weights = group, of_weights
        preset = configured_preset(worker.config)
        with torch.device("meta"):
            whole = worker.task.new_model(worker.model.config)
        order, names = (_names_by_group(preset, model) for model in (whole, worker.model))
        self._size, self._own = len(order), len(names)
        # The tied weight counts once, on the first stage.
        own = [number for number, name in enumerate(names) if not is_second(name, worker.division)]
        self._counted, self._places = own, [order.index(names[number]) for number in own]

    def size(self, weight: Tensor) -> int:
        return self._of_weights.size(weight)

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of_weights.each(tensors)

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        assert len(tensors) == self._own, "a weight without gradient"
        own = self.each(tensors)
        every = own.new_zeros(self._size)
        every[self._places] = own[self._counted]
        self._group.sum(every)
        norm: Tensor = torch.linalg.vector_norm(every)
        return norm


def _names_by_group(preset: Preset, model: HeadedBert) -> list[str]:
    """Names of the trained weights in the order of the optimiser's groups."""
    names = {weight: name for name, weight in model.named_parameters()}
    return [
        names[weight]
        for group in group_parameters(preset, model.named_parameters())
        for weight in group["params"]
    ]
