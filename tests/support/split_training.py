"""Short trainings of a tiny model on generated batches, by one process or by pipeline stages."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from tests.support.compiling import capturing, count_graphs
from tests.support.ordered_sums import PipelinedSums
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.data.evaluation import load_evaluation_batches, make_evaluation_form
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.devices.cpu import Cpu
from trainer.run.strategies import find_inference, find_strategy, find_strategy_class
from trainer.splitting.pieces import find_planned_division
from trainer.splitting.plan.plan import Memory, Plan, StagePlan
from trainer.tasks.choice import find_task
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import ModelShare, Worker, hold_whole_model
from trainer.workers.collective import Collective

LAYERS = 4
BATCH_SIZE = 4


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Settings of a short training.

    stages, copies: division of the model.
    micro_batches: per update, over all copies.
    compiled: whether several processes compile the model.
    model, settings: changes of the model's shape and of the configuration.
    """

    stages: int = 1
    copies: int = 1
    micro_batches: int = 4
    updates: int = 1
    recomputes: bool = False
    fill: float = 1.0
    evaluates: bool = False
    compiled: bool = False
    model: dict[str, Any] = field(default_factory=dict, hash=False)
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def workers(self) -> int:
        return self.stages * self.copies

    def shape(self) -> ModelConfig:
        dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
        rest = {"vocab_size": 203, "num_hidden_layers": LAYERS, "max_position_embeddings": 64}
        return ModelConfig(**(dropout | sizes | rest | self.model))

    def config(self) -> Config:
        return Config.of(
            **({"optimiser": "lamb-nvidia", "batch_size": BATCH_SIZE, "seed": 5} | self.settings)
        )

    def train(self, workers: Collective) -> "Result":
        if not self.compiled:
            return train(self, workers)
        with capturing():
            result = train(replace(self, settings={**self.settings, "compile": True}), workers)
            assert count_graphs()
        return result


def even_plan(shape: ModelConfig, stages: int, copies: int, *, recomputes: bool = False, **keys: Any) -> Plan:
    """Return a plan whose stages have equally many layers. Its time and memory forecasts are meaningless."""
    edges = [shape.num_hidden_layers * number // stages for number in range(stages + 1)]
    nothing = Memory(weights=0, gradients=0, moments=0, activations=0)
    none = {"forward": 1.0, "backward": 2.0, "transfer": 0.0, "all_reduce": 0.0, "memory": nothing}
    parts = [
        StagePlan(first=first, last=last, recomputes=recomputes, sharded=False, **none)  # type: ignore[arg-type]
        for first, last in pairwise(edges)
    ]
    known: dict[str, Any] = {
        "sequence_length": 64,
        "precision": "fp32",
        "optimiser": "lamb-nvidia",
        "batch_size": BATCH_SIZE,
        "micro_batches": 4,
    }
    return Plan(model=shape.as_json(), copies=copies, stages=tuple(parts), **(known | keys))


@dataclass(frozen=True, kw_only=True)
class Result:
    """A worker's weights at the start and at the end, gradients of its first update, and losses.

    applied, skipped: numbers of updates that changed the weights, and that were skipped.
    """

    first: dict[str, Tensor]
    gradients: dict[str, Tensor]
    weights: dict[str, Tensor]
    values: list[Tensor]
    evaluated: Tensor
    applied: int
    skipped: int


def train(trial: Trial, workers: Collective, *, in_order: bool = False) -> Result:
    """Train this worker's part of the model.

    in_order: train the whole model in one process, and add gradients up in the order of the trial's stages
        and copies.
    """
    config, shape = trial.config(), trial.shape()
    device = Cpu(config)
    task = find_task(config.task, config, device.row_losses)
    division = hold_whole_model(workers)
    if trial.stages > 1 and not in_order:
        plan = even_plan(shape, trial.stages, trial.copies, recomputes=trial.recomputes)
        division = find_planned_division(workers, plan)
    device.seed(config.data.seed)
    with torch.device("meta"):
        model = task.new_model(shape)
    model = find_strategy_class(device, division).build(model, device, workers, division)
    worker = Worker(
        config=config, device=device, collective=workers, model_share=division, task=task, model=model
    )
    strategy = find_strategy(worker)
    own = dict(model.named_parameters())
    first = {name: weight.detach().clone() for name, weight in own.items()}
    gradients: dict[str, Tensor] = {}
    take = strategy.optimiser_step.take

    def note(found: list[Tensor], rate: float, number: int) -> None:
        if not gradients:
            gradients.update(
                {name: weight.grad.clone() for name, weight in own.items() if weight.grad is not None}
            )
        take(found, rate, number)

    strategy.optimiser_step.take = note  # type: ignore[method-assign]
    if in_order:
        assert isinstance(strategy, Strategy)
        ordered = PipelinedSums(worker, strategy, trial.copies)
    values = list[Tensor]()
    for number, batches in enumerate(training_batches(trial, config, division)):
        at = UpdateNumber(0, number, number)
        if in_order:
            values.append(ordered.update(batches, 1e-3, at))
        else:
            values += strategy.update([batches], 1e-3, at)
    evaluated = torch.zeros(0)
    if trial.evaluates:
        with find_inference(worker, strategy).evaluating() as measure:
            evaluated = torch.stack([measure(batch).sums for batch in held_out(trial, division)]).sum(0)
    applied, skipped = (
        strategy.optimiser_step.applied,
        getattr(strategy.optimiser_step, "read_skipped", int)(),
    )
    strategy.release()
    return Result(
        first=first,
        gradients=gradients,
        weights={name: weight.detach().clone() for name, weight in own.items()},
        values=values,
        evaluated=evaluated,
        applied=applied,
        skipped=skipped,
    )


def data_of(trial: Trial) -> OpenedDataset:
    layout = ShardLayout(max_seq_length=64, max_predictions_per_seq=10)
    return generate_data(layout, vocabulary_size=trial.shape().vocab_size, fill=trial.fill)


def training_batches(trial: Trial, config: Config, division: ModelShare) -> Sequence[Sequence[Batch]]:
    """Return the micro-batches of this worker's copy for each update."""
    data = data_of(trial)
    form = make_form(
        Rows(data), batch_size=BATCH_SIZE, padded=config.loading.rows, micro_batches=trial.micro_batches
    )
    loader = Loader(
        Rows(data),
        form=form,
        batch_size=BATCH_SIZE,
        accumulation=trial.micro_batches // division.copies,
        workers=division.copies,
        rank=division.copy,
    )
    with closing(loader):
        return [update.batches for update in islice(loader, trial.updates)]


def held_out(trial: Trial, division: ModelShare) -> Sequence[Batch]:
    data = data_of(trial)
    form = make_evaluation_form(data, batch_size=BATCH_SIZE)
    return list(
        load_evaluation_batches(
            data, form=form, batch_size=BATCH_SIZE, workers=division.copies, rank=division.copy, limit=22
        )
    )
