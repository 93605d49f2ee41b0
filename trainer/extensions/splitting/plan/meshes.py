"""Meshes: ways to divide devices into stages and copies, and an update into micro-batches."""

from collections.abc import Iterator
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.extensions.splitting.plan.request import PlanRequest


class Mesh(NamedTuple):
    """Devices as stages x copies, and the micro-batches of a copy in an update.

    shards_ends: the first and the last stage are sharded, else neither is. Both have the word embeddings,
    where the heads use them, and add up their gradients. shards_middle: those between may be sharded.
    """

    stages: int
    copies: int
    micro_batches: int
    rows: int  # of a micro-batch
    shards_ends: bool = False
    shards_middle: bool = False

    def in_flight(self, left: int) -> int:
        """Micro-batches under way at once in a stage that is so many stages from the end (the last: 1).

        Fewer micro-batches than stages all go forward before the first goes backward.
        """
        return min(left, self.micro_batches) if self.micro_batches >= self.stages else self.micro_batches


def meshes_of(request: PlanRequest) -> list[Mesh]:
    """All meshes of the request's devices, those with few stages and few micro-batches first.

    Every device is used and every copy has the same micro-batches. The limits of micro-batches and powers of
    two are for pipelines. SettingsError where there is no such mesh.
    """
    meshes = [mesh for stages in _divisors(request.devices) for mesh in _with_stages(request, stages)]
    if meshes:
        return meshes
    most = min(request.devices, request.model.num_hidden_layers)
    wanted = f"{request.examples} examples of an update" + (
        f" in micro-batches of {size} rows" if (size := request.update.batch_size) else ""
    )
    raise SettingsError(
        f"plan: {request.devices} devices cannot share {wanted} in 1 to {most} stages with "
        f"{request.split.min_micro_batches} to {request.split.max_micro_batches} micro-batches"
        + (", powers of two" if request.split.power_of_two else "")
        + "; change the batch size, the number of devices or these limits"
    )


def _with_stages(request: PlanRequest, stages: int) -> Iterator[Mesh]:
    split, given = request.split, request.update.batch_size
    copies, is_pipeline = request.devices // stages, stages > 1
    has_powers = split.power_of_two and is_pipeline
    asked = (split.stages or stages, split.copies or copies)
    is_kind = request.strategy == "auto" or (request.strategy == "pipelined") == is_pipeline
    if asked != (stages, copies) or not is_kind or stages > request.model.num_hidden_layers:
        return
    if request.examples % copies or (has_powers and not (_is_power(stages) and _is_power(copies))):
        return
    rows = request.examples // copies
    must_shard = request.strategy == "sharded"
    may_shard = request.may_shard and copies > 1 and request.strategy != "replicated"
    may_shard = may_shard and (request.may_shard_stages or not is_pipeline)
    for micro_batches in _divisors(rows):
        size = rows // micro_batches
        is_many = split.min_micro_batches <= micro_batches <= split.max_micro_batches
        is_free = not has_powers or given is not None or _is_power(micro_batches)
        if given in (None, size) and (not is_pipeline or (is_many and is_free)):
            for shards_ends in sorted({must_shard, must_shard or may_shard}):
                yield Mesh(stages, copies, micro_batches, size, shards_ends, may_shard)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0
