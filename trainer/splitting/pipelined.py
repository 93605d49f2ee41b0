"""Pipelined training: each worker has some of the layers, and micro-batches pass from stage to stage."""

from collections.abc import Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from bertdata.errors import BertDataError
from trainer.config.schedules.form import Preset
from trainer.data.batches import Batch
from trainer.model.headed import HeadedBert
from trainer.splitting.held import WORD_EMBEDDINGS, is_copied_embedding
from trainer.splitting.split_strategy import SplitInference, SplitStrategy
from trainer.splitting.stage import WorkerStage, count_tokens, make_schedule, pad_to_same_length
from trainer.splitting.subgroups import StageGroups, Subgroup
from trainer.tasks.task import Outcome
from trainer.update.averaging import average_weights, find_sum_dtype
from trainer.update.loss_shares import compute_loss_divisors
from trainer.update.optimiser import Norms, find_configured_preset, group_parameters
from trainer.update.strategy import UpdateNumber
from trainer.update.worker import Worker

_KEPT_SCHEDULES = 4
"""Number of PyTorch's pipeline schedules that are kept for reuse.

PyTorch needs a separate schedule for each shape of micro-batches. Only a few are kept, because each schedule
holds memory for the tensors that its stage receives.
"""


class PipelinedInference(SplitInference):
    """Evaluation with a pipeline: each stage sends a batch's tensors to the next, and the last stage
    computes the results.
    """

    def __init__(self, worker: Worker, strategy: "Pipelined | None" = None) -> None:
        """Create the process groups, or reuse the groups of a training.

        strategy: strategy of the training whose process groups are reused. None if nothing is trained.
        """
        super().__init__(worker, strategy)
        self._groups = strategy.groups if strategy else StageGroups(worker)
        self._stage = WorkerStage(worker)

    def _measure(self, batch: Batch) -> Outcome:
        """Compute the outcome (loss and metrics) of a batch.

        A worker that does not have the last stage returns zeros.
        """
        worker, stage, pipeline = self._worker, self._stage, self._groups.pipeline
        place = worker.model_share.stage
        received = (
            ()
            if stage.is_first
            else stage.make_empty_tensors(count_tokens(batch), worker.device.torch_device)
        )
        for tensor in received:
            pipeline.receive(tensor, place - 1)
        if stage.is_last:
            return worker.device.forward(lambda moved: stage.outcome(received, moved), batch)
        for tensor in worker.device.forward(lambda moved: stage.encode(received, moved), batch):
            pipeline.send(tensor.contiguous(), place + 1)
        return Outcome(torch.zeros(()), torch.zeros(2 * len(worker.task.metrics)))

    def release(self) -> None:
        """Destroy the process groups of the pipeline."""
        self._groups.close()


class Pipelined(SplitStrategy):
    """Strategy that trains with torch.distributed.pipelining.

    Workers that have a copy of the same stage average their gradients. Then each worker's optimiser
    changes the weights of the worker's stage. If the heads use the word embeddings, the first and the last
    stage both have them. Both stages get the sum of their two gradients, so that their optimisers change
    the embeddings alike.
    """

    inference = PipelinedInference

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        self.groups = StageGroups(worker)
        self.optimiser.norms = StageNorms(worker, self.groups.pipeline, self.held.norms)
        self._stage = WorkerStage(worker, self.optimiser_step.scale)
        make = partial(make_schedule, worker, self._stage, self.groups.pipeline)
        self._find_schedule = lru_cache(_KEPT_SCHEDULES)(make)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        worker = self.worker
        with worker.collective.naming_lost_workers():
            self._stage.divisors = compute_loss_divisors(worker, batches, worker.model_share.copies)
            values = self._run_stages(pad_to_same_length(batches, worker.device.prepare), first)
            worker.device.after_backward()
            self.optimiser_step.take(self._average(), learning_rate, first.update + 1)
        self.held.free_gradients()
        none = torch.zeros(2 + 2 * len(worker.task.metrics), device=worker.device.torch_device)
        return [torch.stack(values).sum(0) if values else none]

    def _run_stages(self, batches: Sequence[Batch], at: UpdateNumber) -> list[Tensor]:
        """Run all micro-batches of an update through the pipeline.

        The gradients, multiplied by the loss scale, are added to the ``grad`` of the weights. The last stage
        returns ``join_loss_and_sums`` of each micro-batch. Other stages return an empty list.
        batches: micro-batches with the same number of tokens.
        at: number of the update.
        """
        stage, numbers = self._stage, torch.arange(len(batches))
        stage.batches, stage.at, stage.values = batches, at, []
        schedule = self._find_schedule(count_tokens(batches[0]), len(batches))
        target = {"target": numbers} if stage.is_last else {}
        try:
            schedule.step(number=numbers, return_outputs=False, **target)
        except RuntimeError as error:  # PyTorch wraps an error that the model raises in a RuntimeError
            if isinstance(error.__cause__, BertDataError):
                raise error.__cause__ from None
            raise
        finally:
            stage.batches = ()
        return stage.values

    def _average(self) -> list[Tensor]:
        """Average the gradients over the workers with copies of this stage, and return the gradients.

        The gradient of the tied word embeddings is also summed over the first and the last stage, which
        both have these embeddings. The sum of two numbers does not depend on their order, so both
        stages get the same bits.
        """
        config, own = self.worker.config, self.held.parameters
        gradients = self.held.list_gradients()
        if not self.held.is_sharded:  # FSDP2 has already averaged sharded gradients
            self.groups.copies.average(gradients, find_sum_dtype(config))
            average_weights(self.groups.copies.average, own.values(), config.workers.force_weight_sync)
        if self.groups.tied.size:
            tied = own[WORD_EMBEDDINGS].grad
            assert tied is not None
            self.groups.tied.sum(tied)
        return gradients

    def release(self) -> None:
        self.groups.close()


class StageNorms(Norms):
    """Norms of the weights and gradients of all stages of a pipeline. The weights may also be sharded.

    The stages exchange the norm of each weight and put the norms in the order of the whole model. The norm
    over all weights is computed from this list, so it has the same bits as in a single process.
    """

    def __init__(self, worker: Worker, group: Subgroup, of_weights: Norms) -> None:
        """Find the position of each weight of this stage in the whole model.

        group: the workers of the pipeline.
        of_weights: object that computes the norms of this stage's weights.
        """
        self._group, self._of_weights = group, of_weights
        preset = find_configured_preset(worker.config)
        with torch.device("meta"):
            whole = worker.task.new_model(worker.model.config)
        order, names = (_list_weight_names(preset, model) for model in (whole, worker.model))
        self._size, self._own = len(order), len(names)
        # The tied word embeddings count once, on the first stage. order.index gives the position of each
        # weight in the whole model. Every stage writes its norms to its positions in a vector of zeros, and
        # the sum of these vectors over the stages has all norms.
        own = [
            number for number, name in enumerate(names) if not is_copied_embedding(name, worker.model_share)
        ]
        self._counted, self._places = own, [order.index(names[number]) for number in own]

    def count_elements(self, weight: Tensor) -> int:
        return self._of_weights.count_elements(weight)

    def compute_each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of_weights.compute_each(tensors)

    def compute_total(self, tensors: Sequence[Tensor]) -> Tensor:
        assert len(tensors) == self._own, "a weight without gradient"
        own = self.compute_each(tensors)
        every = own.new_zeros(self._size)
        every[self._places] = own[self._counted]
        self._group.sum(every)
        norm: Tensor = torch.linalg.vector_norm(every)
        return norm


def _list_weight_names(preset: Preset, model: HeadedBert) -> list[str]:
    """Return the names of the trained weights, in the order of the optimiser's parameter groups."""
    names = {weight: name for name, weight in model.named_parameters()}
    return [
        names[weight]
        for group in group_parameters(preset, model.named_parameters())
        for weight in group["params"]
    ]
