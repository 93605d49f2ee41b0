"""The two programs that PopTorch compiles for Graphcore's IPUs: one makes updates, the other evaluates."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from bertdata.config.settings import require
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.batches import Batch
from trainer.devices.ipu.device import Ipu
from trainer.devices.ipu.options import (
    check_training,
    find_loss_scale,
    make_optimiser,
    make_training_options,
    set_shared_options,
)
from trainer.errors import CheckpointError
from trainer.tasks.task import Outcome
from trainer.update.adaptive_scale import AdaptiveScale
from trainer.update.inference import Inference
from trainer.update.optimiser import find_configured_preset, group_parameters
from trainer.update.step import OptimiserStep
from trainer.update.strategy import Strategy, UpdateNumber, join_loss_and_sums
from trainer.update.worker import Worker

_STEP = "Step"


class ModelWithLoss(nn.Module):
    """The model as a module that PopTorch can compile. It takes a batch's tensors and returns loss and sums.

    The loss is fp32. The sums are those that ``join_loss_and_sums`` returns. When evaluating, only the sums
    are returned. With reduction_type "sum", PopTorch also adds losses up over its replicas (copies of the
    model on the IPUs). This trainer averages over replicas, so the loss is divided by their number.
    batch: any batch whose tensors have the same names. ``forward`` replaces its tensors with the arguments,
        because PopTorch can pass only tensors.
    """

    batch: Batch

    def __init__(self, poptorch: ModuleType, worker: Worker) -> None:
        super().__init__()
        self.model = worker.model
        self._task = worker.task
        there = worker.collective.size * worker.device.replicas
        update = worker.config.update
        is_sum = worker.config.ipu.reduction_type == "sum"
        self._divisor = (update.replicas or there) if is_sum else 1
        over = update.loss_over
        require(
            over == "micro_batch", f"device 'ipu': loss_over is {over}, its programs have micro_batch alone"
        )
        self._identity_loss = poptorch.identity_loss

    def forward(self, *tensors: Tensor) -> Any:
        batch = self.batch.changed(**dict(zip(self.batch.tensors(), tensors, strict=True)))
        outcome = self._task.outcome(self.model, batch)
        sums = join_loss_and_sums(outcome)
        if not self.training:
            return sums
        loss = outcome.loss / self._divisor if self._divisor > 1 else outcome.loss
        return self._identity_loss(loss, reduction="none"), sums


class IpuStep(OptimiserStep):
    """The optimiser's settings and the number of updates made. The program on the IPUs makes the step."""

    applied = 0

    def __init__(self, config: Config, optimiser: Any) -> None:
        self.optimiser = optimiser
        # This scale is only stored in checkpoints, because PopTorch's optimisers scale the loss themselves.
        fixed = find_loss_scale(config, 0)
        self.scale = AdaptiveScale(fixed, fixed, fixed)

    def take(self, gradients: list[Tensor], rate: float, number: int) -> None:
        raise AssertionError("the program ends its updates itself")


class IpuPrograms(Strategy, Inference):
    """The training program and the evaluation program of a worker's model, which use the
    same IPUs alternately.

    The training program is compiled at the first update, when the model has the weights from which the run
    starts. Between updates, weights and moments stay on the IPUs.
    """

    def __init__(self, worker: Worker) -> None:
        assert isinstance(worker.device, Ipu)
        self.worker = worker
        self._device, self._poptorch = worker.device, worker.device.poptorch
        self._module = ModelWithLoss(self._poptorch, worker)
        self._width = 2 * (1 + len(worker.task.metrics))  # number of sums that a micro-batch returns
        self._names = {name for name, _ in worker.model.named_parameters()}
        self._training: Any = None
        self._inference: Any = None
        self._moments: dict[str, Tensor] = {}

    @property
    def shape(self) -> ModelConfig:
        return self.worker.model.config

    def update(
        self, updates: Sequence[Sequence[Batch]], learning_rate: float, first: UpdateNumber
    ) -> list[Tensor]:
        config, optimiser = self.worker.config, self.optimiser_step.optimiser
        for group in optimiser.param_groups:
            group["lr"] = learning_rate
        if self._training is None:
            self.compile(updates, first)
        optimiser.loss_scaling = find_loss_scale(config, first.update)
        self._training.setOptimizer(optimiser)
        _, values = self._training(*self._concatenate_batches(updates))
        if config.ipu.synthetic_data:
            # With synthetic data, which IPUs can generate, no results are returned.
            values = torch.zeros_like(values)
        self.optimiser_step.applied += len(updates)
        return [self._add_up(rows) for rows in values.reshape(len(updates), -1)]

    def compile(self, updates: Sequence[Sequence[Batch]], first: UpdateNumber) -> None:
        # The seed depends on the number of steps so far. Otherwise a resumed run would repeat the dropout of
        # the first updates.
        seed = self.worker.config.data.seed + first.seed_offset
        options = make_training_options(
            self._device, accumulation=len(updates[0]) // self._device.replicas, seed=seed
        )
        executor = self._poptorch.trainingModel(
            self._module, options, optimizer=self.optimiser_step.optimiser
        )
        executor.compile(*self._concatenate_batches(updates))
        self._training = executor
        if self._moments:
            self._restore_moments()

    def _concatenate_batches(self, updates: Sequence[Sequence[Batch]]) -> list[Tensor]:
        """Concatenate the tensors of all micro-batches, in PopTorch's order: by update,
        accumulation, and replica.
        """
        batches = [batch for update in updates for batch in update]
        self._module.batch = batches[0]
        columns = zip(*(batch.tensors().values() for batch in batches), strict=True)
        return [torch.cat(column) for column in columns]

    def _restore_moments(self) -> None:
        """Copy the moments from the checkpoint into the state of PopTorch's optimiser.

        Call this after compiling, because the state has no entries before.
        """
        optimiser, moments = self.optimiser_step.optimiser, self._moments
        state = optimiser.state_dict()
        targets = self._select_moments(state)
        if foreign := sorted(moments.keys() ^ targets.keys()):
            raise CheckpointError(
                f"checkpoint and PopTorch's {type(optimiser).__name__} differ in {foreign[0]}; "
                "continue with the checkpoint's optimiser, or --start-from-ckpt"
            )
        for key, target in targets.items():
            target.copy_(moments[key])
        for key, target in state["ipu_state"].items():
            if key.partition("___")[0] == _STEP:
                target.fill_(self.optimiser_step.applied)
        optimiser.load_state_dict(state)

    def _select_moments(self, state: dict[str, Any]) -> dict[str, Tensor]:
        """Return the moments in the state of PopTorch's optimiser as {"exp_avg/WEIGHT": tensor, ...}.

        A name in this state consists of "Accl1___" or "Accl2___", the names of wrapping modules, and the
        weight's name.
        """
        is_adaptive = "betas" in self.optimiser_step.optimiser.defaults
        kinds = {"Accl1": "exp_avg", "Accl2": "exp_avg_sq"} if is_adaptive else {"Accl1": "momentum_buffer"}
        found = {}
        for key, value in state["ipu_state"].items():
            kind, _, name = key.partition("___")
            while name not in self._names and name:
                name = name.partition(".")[2]
            if kind in kinds:
                found[f"{kinds[kind]}/{name}"] = value
        return found

    def fetch(self) -> None:
        if self._training is not None:
            self._training.copyWeightsToHost()

    def moments(self) -> dict[str, Tensor]:
        if self._training is None:
            return self._moments
        return self._select_moments(self.optimiser_step.optimiser.state_dict())

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        self._moments, self.optimiser_step.applied = moments, applied

    def check_accumulation(self, accumulation: int) -> None:
        check_training(self._device, accumulation)

    @contextmanager
    def evaluating(self) -> Iterator[Callable[[Batch], Outcome]]:
        self._module.eval()
        with self._detach_training():
            if self._inference is not None:
                self._inference.attachToDevice()
            yield self._measure
            if self._inference is not None:
                self._inference.detachFromDevice()
        self._module.train()

    @contextmanager
    def _detach_training(self) -> Iterator[None]:
        """Return a context in which the training program is detached from the IPUs.

        It is attached again at the end.

        While it is detached, weights and moments are on the host.
        """
        if self._training is not None:
            self._training.detachFromDevice()
        yield
        if self._training is not None:
            self._training.attachToDevice()

    def _measure(self, batch: Batch) -> Outcome:
        """Return the outcome of a batch, with the sums of the metrics over all replicas.

        Rows of weight 0 are added, so that the number of rows is a multiple of the number of replicas.
        """
        self._module.batch = batch
        tensors = batch.tensors()
        if missing := -len(batch) % self._device.replicas:
            padding = {name: one.new_zeros(missing, *one.shape[1:]) for name, one in tensors.items()}
            tensors = {name: torch.cat([one, padding[name]]) for name, one in tensors.items()}
            tensors["next_sentence_labels"][-missing:] = -1
        if self._inference is None:
            options = self._device.fresh_options()
            set_shared_options(
                self._device, options, "ShardedExecution"
            )  # a single batch is evaluated by one stage of the pipeline after the other
            self._inference = self._poptorch.inferenceModel(self._module, options)
            self._inference.compile(*tensors.values())
        sums = self._add_up(self._inference(*tensors.values()))
        return Outcome(sums[0], sums[2:])

    def _add_up(self, values: Tensor) -> Tensor:
        """Add up the sums of the micro-batches. Each has a row in ``values``."""
        return values.reshape(-1, self._width).float().sum(0)

    def release(self) -> None:
        for program in (self._training, self._inference):
            if program is not None:
                program.destroy()


def find_inference(worker: Worker, strategy: Strategy | None = None) -> Inference:
    """Return the object that evaluates the model: the training's programs, or programs that only evaluate.

    strategy: strategy of the training, or None if nothing is trained.
    """
    assert strategy is None or isinstance(strategy, IpuPrograms)
    return strategy or IpuPrograms(worker)


class IpuTraining(IpuPrograms):
    """The programs of a training.

    Creating them raises SettingsError for settings that PopTorch cannot train with.
    """

    inference = staticmethod(find_inference)

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker)
        _, accumulation = worker.config.update.micro_batches(worker.collective.size * self._device.replicas)
        self.check_accumulation(accumulation)
        self._device.check_workers(worker.collective.size)
        preset = find_configured_preset(worker.config)
        groups = group_parameters(preset, worker.model.named_parameters())
        self.optimiser_step = IpuStep(
            worker.config, make_optimiser(self._poptorch, worker.config, preset, groups)
        )
