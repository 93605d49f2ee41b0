"""Short trainings of a tiny model on generated batches, by one process or by several that share the model."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from bertdata.records import ShardLayout
from tests.support.compiling import capturing, count_graphs
from tests.support.ordered_sums import ShardedSums
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices.cpu import Cpu
from trainer.run.runtime import make_model
from trainer.run.strategies import find_inference, find_strategy
from trainer.splitting.held import WeightPart
from trainer.splitting.placing import place_by_plan
from trainer.splitting.split_strategy import SplitStrategy
from trainer.tasks.choice import find_task
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import Runtime, hold_whole_model
from trainer.workers.collective import Collective

BATCH_SIZE = 2
MICRO_BATCHES = 6
"""Number of micro-batches in an update, over all processes. It is divisible by 1, 2 and 3."""

SHAPE = ModelConfig(
    vocab_size=61, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Settings of a short training.

    compiled: whether several processes compile the model.
    model: changes of the model's shape.
    settings: changes of the configuration.
    """

    updates: int = 20
    compiled: bool = False
    rate: float = 1e-3
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> ModelConfig:
        return read_model_config({**SHAPE.as_json(), **self.model})

    def config(self, strategy: str) -> Config:
        usual = {"optimiser": "lamb-nvidia", "max_grad_norm": 0.5, "seed": 5, "batch_size": BATCH_SIZE}
        return Config.of(**{**usual, "strategy": strategy, **self.settings})

    def train(self, workers: Collective) -> "Result":
        if not self.compiled:
            return train(self, workers)
        with capturing():
            result = train(replace(self, settings={**self.settings, "compile": True}), workers)
            assert count_graphs()
        return result


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of a training in one process.

    first, last: the process's parts of weights and moments at the start and at the end.
    losses: loss of each update, over this process's micro-batches.
    bytes: size of weights and moments in memory.
    kept: number of layer weights kept from the forward pass for the backward pass, and their bytes.
    """

    first: dict[str, WeightPart]
    last: dict[str, WeightPart]
    losses: list[float]
    applied: int
    skipped: int
    scale: float
    evaluated: Tensor
    bytes: int
    kept: tuple[int, int]


def train(trial: Trial, workers: Collective, *, copies: int | None = None) -> Result:
    """Train in this process. Every process must call it. A single process has the whole model.

    copies: for a single process: add up gradients and norms in the order of this many processes that share
        the model. The losses are then those of the first process.
    """
    of_several = "auto" if "plan" in trial.settings else "sharded"
    config = trial.config(of_several if workers.size > 1 else "replicated")
    device = Cpu(config)
    task = find_task(config.task, config, device.row_losses)
    runtime = Runtime(
        config=config, device=device, collective=workers, model_share=hold_whole_model(workers), task=task
    )
    runtime = place_by_plan(runtime, trial.shape, 32)
    model = make_model(runtime, trial.shape)
    strategy = find_strategy(runtime.worker(model))
    parts = _whole_parts if not isinstance(strategy, SplitStrategy) else _own_parts
    first = parts(model, strategy)
    ordered = None
    if copies is not None:
        assert isinstance(strategy, Strategy)
        ordered = ShardedSums(runtime.worker(model), strategy, copies)
    division, losses = runtime.model_share, []
    for number, batches in enumerate(_batches(trial.updates)):
        own = batches[division.copy :: division.copies]
        at = UpdateNumber(1, number, number)
        values = ordered.update(own, trial.rate, at) if ordered else strategy.update([own], trial.rate, at)
        losses.append(float(values[0][0]))
    with find_inference(runtime.worker(model), strategy).evaluating() as measure:
        (held_out,) = _batches(1, seed=9)
        evaluated = torch.stack([measure(batch).sums for batch in held_out]).sum(0)
    last = parts(model, strategy)
    return Result(
        first=first,
        last=last,
        losses=losses,
        applied=strategy.optimiser_step.applied,
        skipped=getattr(strategy.optimiser_step, "read_skipped", int)(),
        scale=strategy.optimiser_step.scale.state_dict().get("value", 1.0),
        evaluated=evaluated,
        kept=_kept_weights(runtime, model, held_out[0]) if division.stages == 1 else (0, 0),
        bytes=sum(part.rows.untyped_storage().nbytes() for part in last.values()),
    )


def _kept_weights(runtime: Runtime, model: Any, batch: Batch) -> tuple[int, int]:
    shapes = {(40, 16), (16, 40), (16, 16)}
    saved = list[Tensor]()

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outcome = runtime.device.forward(lambda moved: runtime.task.outcome(model, moved), batch)
    weights = [tensor.untyped_storage() for tensor in saved if tuple(tensor.shape) in shapes]
    kept = {storage.data_ptr(): storage.nbytes() for storage in weights}
    outcome.loss.backward()
    return len(weights), sum(kept.values())


def _own_parts(model: Any, strategy: Any) -> dict[str, WeightPart]:
    found = [*strategy.weight_parts(), *strategy.moment_parts()]
    return {part.name: part._replace(rows=part.rows.detach().clone()) for part in found}


def _whole_parts(model: Any, strategy: Any) -> dict[str, WeightPart]:
    tensors = {**dict(model.named_parameters()), **strategy.moments()}
    return {
        name: WeightPart(name, tuple(tensor.shape), 0, tensor.detach().clone(), True)
        for name, tensor in tensors.items()
    }


def _batches(updates: int, seed: int = 5) -> Sequence[Sequence[Batch]]:
    """Return all micro-batches of each update."""
    data = generate_data(
        ShardLayout(max_seq_length=32, max_predictions_per_seq=5),
        vocabulary_size=SHAPE.vocab_size,
        examples=64,
        fill=0.6,
    )
    form = make_form(Rows(data), batch_size=BATCH_SIZE, micro_batches=MICRO_BATCHES)
    loader = Loader(Rows(data), form=form, batch_size=BATCH_SIZE, accumulation=MICRO_BATCHES, seed=seed)
    with closing(loader):
        return [update.batches for update in islice(loader, updates)]


def joined(results: Sequence[Result], which: str) -> dict[str, Tensor]:
    """Return whole weights and moments, joined from the parts of all processes, which must not overlap."""
    whole: dict[str, Tensor] = {}
    names = {name: None for result in results for name in getattr(result, which)}
    for name in names:
        written: list[WeightPart] = [
            part for result in results for part in [getattr(result, which).get(name)] if part and part.writes
        ]
        rows = 0
        for part in written:
            assert part.start == rows, (name, part.start, rows)
            assert part.shape == written[0].shape
            rows += len(part.rows)
        whole[name] = torch.cat([part.rows for part in written])
        assert tuple(whole[name].shape) == written[0].shape, name
    return whole


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Return the norm of the difference of all weights, divided by the norm of the weights ``other``."""
    names = [name for name in other if "/" not in name]
    assert names == [name for name in one if "/" not in name]
    flat = [torch.cat([tensors[name].double().flatten() for name in names]) for tensors in (one, other)]
    return float((flat[0] - flat[1]).norm() / flat[1].norm())
