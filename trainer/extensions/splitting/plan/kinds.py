"""Kinds of stages: with or without recomputation, whole or sharded."""

from typing import NamedTuple

from trainer.extensions.splitting.plan.request import PlanRequest


class StageKind(NamedTuple):
    """A stage's way of keeping its activations and its weights."""

    recomputes: bool
    sharded: bool


KINDS = (StageKind(False, False), StageKind(True, False), StageKind(False, True), StageKind(True, True))
"""All kinds; of two that are equally fast the first is taken."""


def is_allowed(kind: StageKind, request: PlanRequest, stages: int, copies: int) -> bool:
    """False where the request or the numbers of stages and copies exclude the kind."""
    if not (request.may_recompute if kind.recomputes else not request.must_recompute):
        return False
    if request.strategy == "sharded":
        return kind.sharded
    return may_shard(request, stages, copies) or not kind.sharded


def may_shard(request: PlanRequest, stages: int, copies: int) -> bool:
    """True if the request lets stages be sharded, of which there are so many with so many copies."""
    is_shardable = request.may_shard and copies > 1 and request.strategy != "replicated"
    return is_shardable and (stages == 1 or request.may_shard_stages)
