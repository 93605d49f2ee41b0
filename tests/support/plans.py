"""Hand-made plans (divisions of a model into pipeline stages) for tests."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.splitting.plan.plan import Memory, Plan, StagePlan
from trainer.splitting.plan.request import PlanRequest

MEMORY = Memory(weights=4_000_000, gradients=4_000_000, moments=8_000_000, activations=1_000_000)


def make_stage(number: int, layers: int = 2, *, forward: float = 0.25, transfer: float = 0.0) -> StagePlan:
    """Return a stage with this many layers. Its backward pass takes twice as long as its forward pass."""
    return StagePlan(
        first=number * layers,
        last=(number + 1) * layers,
        recomputes=number == 0,
        sharded=False,
        forward=forward,
        backward=2 * forward,
        transfer=transfer,
        all_reduce=0.5,
        memory=MEMORY,
        step=0.125,
    )


def make_plan(stages: int | Sequence[StagePlan] = 4, *, copies: int = 2, micro_batches: int = 8) -> Plan:
    """Return a plan for a small model. stages: the stages, or a number of equal stages without transfers."""
    made = [make_stage(number) for number in range(stages)] if isinstance(stages, int) else stages
    model = ModelConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=made[-1].last,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    return Plan(
        model=model.as_json(),
        sequence_length=128,
        precision="bf16",
        optimiser="lamb-nvidia",
        copies=copies,
        batch_size=4,
        micro_batches=micro_batches,
        stages=tuple(made),
    )


def make_request(**given: Any) -> PlanRequest:
    """Return a request for a plan with these values. Other names are keys of the request's configuration."""
    own, keys = _divided(given)
    return PlanRequest(config=Config.of(clipping="per_update", **keys), **own)


def changed(request: PlanRequest, **given: Any) -> PlanRequest:
    """Return a copy of the request with other values.

    Unknown names are keys of the request's configuration.
    """
    own, keys = _divided(given)
    return replace(request.changed(**keys) if keys else request, **own)


def _divided(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = {field.name for field in fields(PlanRequest)}
    own = {name: value for name, value in given.items() if name in names}
    return own, {name: value for name, value in given.items() if name not in names}
