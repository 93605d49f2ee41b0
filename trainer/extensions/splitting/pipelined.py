"""Pipelined training: each worker has some layers, and micro-batches pass from stage to stage."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import Tensor

from trainer.collectives.collective import Collective
from trainer.config.update import Preset
from trainer.data.batches import Batch
from trainer.devices.device import Device
from trainer.extensions.splitting.pieces import keep_layers
from trainer.extensions.splitting.same_length import with_same_length
from trainer.extensions.splitting.sharding import (
    Held,
    ShardNorms,
    copies_mesh,
    fill_shards,
    gather_no_more,
    shard_,
)
from trainer.extensions.splitting.split_strategy import (
    PlannedDivision,
    SplitInference,
    SplitStrategy,
    WeightPart,
    moments_of,
    planned_stage,
)
from trainer.extensions.splitting.stage import Pipeline, WorkerStage
from trainer.extensions.splitting.stage_groups import StageGroups
from trainer.extensions.splitting.stage_norms import StageNorms
from trainer.model.bert import HeadedBert
from trainer.model.task import Outcome
from trainer.update.averaging import sum_type, sync_weights
from trainer.update.optimiser import LOCAL_NORMS, configured_preset, group_parameters
from trainer.update.step import make_step
from trainer.update.strategy import Division, UpdateNumber, Worker

TIED = "bert.embeddings.word_embeddings.weight"
"""The weight that the first and the last stage both have, where the heads use it."""


def build_stage(model: HeadedBert, device: Device, workers: Collective, division: Division) -> HeadedBert:
    """The stage of this worker on the device, with first weights, of a model on the meta device.

    The weights are drawn one after the other and have the bits that they have in one process.
    """
    assert isinstance(division, PlannedDivision)
    stage, whole = division.stage_plan, deepcopy(model)
    keep_layers(model, stage.layers)
    if any(one.sharded for one in division.plan.stages):
        with workers.naming_lost_workers():
            mesh = copies_mesh(device, division)
        if stage.sharded:
            shard_(model, mesh, device.config.update.precision, sum_type(device.config))
    model.to_empty(device=device.torch_device)
    if stage.sharded:
        fill_shards(model, whole.first_weights())
    else:
        own = dict(model.named_parameters())
        for name, values in whole.first_weights():
            if name in own:
                own[name].detach().copy_(values)
    model.bert.recomputes = stage.recomputes
    return device.place(model)


def weight_parts(model: HeadedBert, division: Division) -> list[WeightPart]:
    """The stage's weights. Its copies take turns in writing them, or each writes its own rows."""
    if planned_stage(division).sharded:
        return [_written_once(part, model, division) for part in Held(model).weight_parts()]
    parts = list[WeightPart]()
    for number, (name, weight) in enumerate(model.named_parameters()):
        writes = number % division.copies == division.copy and not _is_second(name, model, division)
        parts.append(WeightPart(name, tuple(weight.shape), 0, weight.detach(), writes))
    return parts


def _written_once(part: WeightPart, model: HeadedBert, division: Division) -> WeightPart:
    """The part of a shard, which the last stage does not write where the first one does."""
    return part._replace(writes=not _is_second(part.name.rpartition("/")[2], model, division))


def _is_second(name: str, model: HeadedBert, division: Division) -> bool:
    """True for the tied weight where it is the last stage's."""
    return name == TIED and model.ties_words and division.stage > 0


class PipelinedInference(SplitInference):
    """Metrics by all stages of a copy, which pass the batches on. Only the last stage has results."""

    exchanges = True

    def __init__(self, worker: Worker, strategy: "Pipelined | None" = None) -> None:
        """strategy: that of the training, whose groups are used. None: there is none."""
        self._worker = worker
        self._groups = strategy.groups if strategy else StageGroups(worker)
        self._stage = WorkerStage(worker)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        model = self._worker.model
        model.eval()
        with torch.no_grad():
            yield self._measure
        model.train()
        gather_no_more(model)

    def _measure(self, batch: Batch) -> Outcome:
        worker, stage, pipeline = self._worker, self._stage, self._groups.pipeline
        place = worker.division.stage
        received = () if stage.is_first else stage.blanks(batch, worker.device.torch_device)
        for tensor in received:
            pipeline.receive(tensor, place - 1)
        if stage.is_last:
            return worker.device.forward(lambda moved: stage.outcome(received, moved), batch)
        for tensor in worker.device.forward(lambda moved: stage.encode(received, moved), batch):
            pipeline.send(tensor.contiguous(), place + 1)
        return Outcome(torch.zeros(()), torch.zeros(2 * len(worker.task.metrics)))

    def weight_parts(self) -> Sequence[WeightPart]:
        """The weights that this worker holds."""
        return weight_parts(self._worker.model, self._worker.division)

    def release(self) -> None:
        self._groups.close()


class Pipelined(SplitStrategy):
    """Updates by torch.distributed.pipelining. The copies of a stage average their gradients.

    The optimiser changes the stage's own weights. Word embeddings that the heads use are on the first and
    on the last stage: both have the sum of their gradients, and so make the same steps.
    """

    inference = PipelinedInference
    build = staticmethod(build_stage)

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.groups = StageGroups(worker)
        self._held = Held(worker.model) if planned_stage(worker.division).sharded else None
        own = self._held or worker.model
        self._own = dict(own.named_parameters())
        self.step = make_step(worker.config, worker.device, self._own.items())
        self.optimiser.norms = find_norms(worker, configured_preset(worker.config), self.groups, self._held)
        self.optimiser.sizes = self._held.sizes() if self._held else {}
        self._pipeline = Pipeline(worker, self.groups.pipeline, self.step.scale)
        self._weights = [weight for weight in self._own.values() if weight.requires_grad]
        self._sum_type = sum_type(worker.config)

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        (batches,) = updates
        worker = self.worker
        with worker.workers.naming_lost_workers():
            values = self._pipeline.run(with_same_length(batches, worker.device.prepare), first)
            worker.device.after_backward()
            gradients = self._average()
            if not self._held:
                sync_weights(self.groups.copies, self._weights, worker.config.update.force_weight_sync)
            self.step.take(gradients, learning_rate, first.step + 1)
        if self._held:
            self._held.drop_gradients()
        self.optimiser.zero_grad()
        none = torch.zeros(2 + 2 * len(worker.task.metrics), device=worker.device.torch_device)
        return [torch.stack(values).sum(0) if values else none]

    def _average(self) -> list[Tensor]:
        """The gradients, averaged over the copies. The tied weight's is the sum of both stages' gradients.

        Two summands in either order have one sum, so that both stages have the same bits.
        """
        if self._held:  # each micro-batch's gradients were averaged in its backward pass
            gradients = self._held.take_gradients()
        else:
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            self.groups.copies.average(gradients, self._sum_type)
        if self.groups.tied.size:
            tied = self._own[TIED].grad
            assert tied is not None
            self.groups.tied.sum(tied)
        return gradients

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        raise AssertionError("a pipelined model is not compiled")

    def weight_parts(self) -> Sequence[WeightPart]:
        return weight_parts(self.worker.model, self.worker.division)

    def moment_parts(self) -> Sequence[WeightPart]:
        if self._held:
            model, division = self.worker.model, self.worker.division
            return [_written_once(part, model, division) for part in self._held.moment_parts(self.optimiser)]
        parts = {part.name: part for part in self.weight_parts()}
        names: dict[Tensor, str] = {weight: name for name, weight in self.worker.model.named_parameters()}
        return [
            parts[names[weight]]._replace(name=f"{kind}/{names[weight]}", rows=moment)
            for weight, kind, moment in moments_of(self.optimiser)
        ]

    def release(self) -> None:
        self.groups.close()


def find_norms(worker: Worker, preset: Preset, groups: StageGroups, held: Held | None) -> StageNorms:
    """The norms of the whole model for an optimiser of this stage."""
    with torch.device("meta"):
        whole = worker.task.new_model(worker.model.config)
    model, division = worker.model, worker.division
    names = ["" if _is_second(name, model, division) else name for name in _names_by_group(preset, model)]
    of_weights = LOCAL_NORMS if held is None else ShardNorms(held.group)
    return StageNorms(groups.pipeline, _names_by_group(preset, whole), names, of_weights)


def _names_by_group(preset: Preset, model: HeadedBert) -> list[str]:
    """Names of the trained weights in the order of the optimiser's groups."""
    names = {weight: name for name, weight in model.named_parameters()}
    return [
        names[weight]
        for group in group_parameters(preset, model.named_parameters())
        for weight in group["params"]
    ]
