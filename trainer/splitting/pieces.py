"""Construction of a worker's piece of a split model, which contains the layers of one stage of the plan.

Weights keep the names that they have in the whole model.
"""

from copy import deepcopy
from dataclasses import dataclass

from torch import nn

from trainer.devices.device import Device
from trainer.model.headed import HeadedBert
from trainer.splitting.held import HeldWeights
from trainer.splitting.plan.plan import Plan
from trainer.splitting.sharding import AbsentModule, make_copies_mesh, shard_model
from trainer.update.averaging import find_sum_dtype
from trainer.update.worker import ModelShare
from trainer.workers.collective import Collective


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedDivision(ModelShare):
    """The stage and copy of the model that a plan assigns to this worker.

    The worker with rank ``rank`` has copy ``rank % copies`` of stage ``rank // copies``.
    plan: the plan that divides the model.
    """

    plan: Plan


def find_planned_division(workers: Collective, plan: Plan) -> PlannedDivision:
    """Return the stage and copy of the model that the plan assigns to this worker."""
    stage, copy = divmod(workers.rank, plan.copies)
    return PlannedDivision(
        copy=copy,
        copies=plan.copies,
        stage=stage,
        stages=len(plan.stages),
        strategy=plan.strategy,
        recomputes=plan.stages[stage].recomputes,
        plan=plan,
    )


def build_piece(model: HeadedBert, device: Device, workers: Collective, division: ModelShare) -> HeadedBert:
    """Return this worker's piece of a model on the device, with initial weights.

    The initial weights are drawn one after the other for the whole model, so the piece gets the same bits as
    in a run with a single process.
    model: the whole model on the meta device, that is, without values. It is changed.
    division: the stage and copy that this worker has.
    """
    assert isinstance(division, PlannedDivision)
    # Remove the other stages' layers while the model is on the meta device, where it needs no memory. Only
    # then allocate memory for this worker's piece. ``whole`` stays on the meta device and yields the initial
    # weights one tensor at a time.
    whole, stage = deepcopy(model), division.plan.stages[division.stage]
    keep_layers(model, stage.layers)
    # All workers must create the mesh (FSDP2's group of processes) together, even a worker whose stage is not
    # sharded.
    if any(one.sharded for one in division.plan.stages):
        mesh = make_copies_mesh(device, workers, division)
        if stage.sharded:
            shard_model(model, mesh, device.config.update.precision, find_sum_dtype(device.config))
    model.to_empty(device=device.torch_device)
    parts = {part.name: part for part in HeldWeights(model, division).weight_parts()}
    for name, values in whole.first_weights():
        if name in parts:
            parts[name].fill(values)
    model.bert.recomputes = stage.recomputes
    return device.place(model)


def keep_layers(model: HeadedBert, layers: range) -> None:
    """Remove from the model the weights of all layers outside the range ``layers``.

    The embeddings are kept if layer 0 is kept. The pooler and the heads are kept if the last layer is kept,
    together with the word embeddings if the heads use them. The names of the weights do not change.
    layers: the numbers of the layers to keep.
    """
    bert = model.bert
    count = len(bert.encoder.layer)
    is_first, is_last = layers.start == 0, layers.stop == count
    for number in set(range(count)) - set(layers):
        bert.encoder.layer[number] = AbsentModule()
    if not is_first:
        kept = "word_embeddings" if is_last and model.ties_words else None
        _remove_modules(
            bert.embeddings, *(name for name, _ in bert.embeddings.named_children() if name != kept)
        )
    if not is_last:
        _remove_modules(bert, "pooler")
        _remove_modules(model, *(name for name, _ in model.named_children() if name != "bert"))


def _remove_modules(module: nn.Module, *names: str) -> None:
    """Replace the named sub-modules of the module with stand-ins that have no weights."""
    for name in names:
        setattr(module, name, AbsentModule())
