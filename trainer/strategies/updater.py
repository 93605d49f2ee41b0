"""One update of the weights: forward, backward, reduce, clip, optimiser step."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from trainer.collectives.collective import Collective, force_weight_sync
from trainer.config.settings import Config
from trainer.data.batches import RowBatch
from trainer.data.order import numbers
from trainer.devices.loss_scale import LossScale
from trainer.errors import NotFiniteError, StopRequested
from trainer.model.bert import BertForPreTraining
from trainer.optim import Preset, find_preset, group_parameters
from trainer.run.checkpoint import State
from trainer.tasks.losses import Losses


class UpdateDevice(Protocol):
    """The part of ``trainer.devices.device.Device`` that an update uses; see the methods there."""

    clips_in_step: bool

    def seed(self, seed: int) -> None: ...

    def losses(self, model: BertForPreTraining, batch: RowBatch) -> Losses: ...

    def optimiser(self, preset: Preset, groups: list[dict[str, Any]]) -> torch.optim.Optimizer: ...

    def scaler(self, precision: str, *, initial: float, floor: float, ceiling: float) -> LossScale: ...

    def clip_(self, gradients: Sequence[Tensor], max_norm: float) -> Tensor: ...

    def after_backward(self) -> None: ...

    def after_step(self) -> None: ...

    def to_host(self, tensor: Tensor) -> Tensor: ...


class Updater:
    """Updates by PyTorch's autograd; a device that works in another way has a subclass.

    applied: updates made, without those skipped because of an overflow.
    """

    def __init__(
        self, config: Config, device: UpdateDevice, workers: Collective, model: BertForPreTraining
    ) -> None:
        self.applied = 0
        self._config = config
        self._device = device
        self._workers = workers
        self._model = model
        fixed = config.update.loss_scaling
        bounds = (config.update.init_loss_scale, config.update.min_loss_scale, config.update.max_loss_scale)
        initial, floor, ceiling = (fixed, fixed, fixed) if fixed else bounds
        self.scale = device.scaler(config.update.precision, initial=initial, floor=floor, ceiling=ceiling)
        preset = find_preset(config.update.optimiser, **optimiser_settings(config))
        self.optimiser = device.optimiser(preset, group_parameters(preset, model.named_parameters()))
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]

    def update(
        self, updates: Sequence[Sequence[RowBatch]], learning_rate: float, state: State
    ) -> list[Tensor]:
        """Change the weights once for each update, which is a sequence of micro-batches.

        Returns this worker's Losses of each update as one tensor: the means averaged over the
        micro-batches, the sums added up. StopRequested leaves the weights as they are, without gradients.
        """
        (batches,) = updates
        config, workers = self._config, self._workers
        try:
            values = self._accumulate(batches, state)
        except StopRequested:
            self.optimiser.zero_grad()
            raise
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if config.update.allreduce_post_accumulation:
            half = torch.bfloat16 if config.update.precision == "bf16" else torch.float16
            workers.average(gradients, half if config.update.allreduce_post_accumulation_fp16 else None)
        self.scale.unscale(gradients)
        force_weight_sync(workers, self._weights, config.update.force_weight_sync)
        if self._clip(gradients, state):
            for group in self.optimiser.param_groups:
                group["lr"] = learning_rate
            self.optimiser.step()
            self.applied += 1
        self._device.after_step()
        self.optimiser.zero_grad()
        return [values]

    def _accumulate(self, batches: Sequence[RowBatch], state: State) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad."""
        config, workers, device = self._config, self._workers, self._device
        clips = config.update.clipping_point == "per_micro_batch"
        count = len(batches)
        sums = list[Tensor]()
        values = list[Tensor]()
        for number, batch in enumerate(batches):
            is_last = number == count - 1
            workers.stopping.check(exchanges=is_last or not config.update.allreduce_post_accumulation)
            # The seed follows the micro-batch, not the worker: dropout is the same for any number of workers.
            micro_batch = workers.rank + workers.size * number
            key = (config.data.seed, "dropout", state.phase, state.step, micro_batch)
            device.seed(int(numbers(1, *key)[0]) >> 1)
            losses = device.losses(self._model, batch)
            self.scale.scale(losses.total / count).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            values.append(torch.stack([*(mean.detach() / count for mean in losses[:3]), *losses[3:]]))
            if config.update.allreduce_post_accumulation and not clips:
                continue  # backward adds to grad
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            if clips:
                device.clip_(gradients, config.update.max_grad_norm * self.scale.value / count)
            if not config.update.allreduce_post_accumulation:
                workers.average(gradients)
            if sums:
                torch._foreach_add_(sums, gradients)
            sums = sums or gradients
            self.optimiser.zero_grad()
        for weight, gradient in zip(self._weights, sums, strict=bool(sums)):
            weight.grad = gradient
        return torch.stack(values).sum(0)

    def _clip(self, gradients: list[Tensor], state: State) -> bool:
        """Clip the averaged gradients if configured; returns whether to apply the update."""
        clips = self._config.update.clipping_point == "per_update" and not self._device.clips_in_step
        checks_overflow = self._config.update.precision == "fp16"
        if not clips and not checks_overflow:
            return True
        norm = self._device.clip_(gradients, self._config.update.max_grad_norm if clips else math.inf)
        try:
            return not checks_overflow or self.scale.update(float(norm))
        except NotFiniteError as error:
            raise NotFiniteError(f"update {state.step + 1}: {error}") from None

    def compile(self, updates: Sequence[Sequence[RowBatch]], state: State) -> None:
        """Compile for the shapes of these updates; the weights must not be used afterwards."""
        self.update(updates, 0.0, state)

    def fetch(self) -> None:
        """Copy the newest weights into the model's parameters, where the device keeps them elsewhere."""

    def moments(self) -> dict[str, Tensor]:
        """The optimiser's tensors as KIND/NAME, without its counts of updates."""
        return {
            f"{kind}/{name}": value
            for name, weight in self._model.named_parameters()
            for kind, value in self.optimiser.state.get(weight, {}).items()
            if isinstance(value, Tensor) and kind != "step"
        }

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        """Set the optimiser's tensors (KIND/NAME) and its count of updates."""
        self.applied = applied
        weights = dict(self._model.named_parameters())
        states = self.optimiser.state
        for key, moment in moments.items():
            kind, _, name = key.partition("/")
            states[weights[name]][kind] = moment
        for group in self.optimiser.param_groups:
            if "step" in group:  # our LAMB counts once a group, PyTorch's AdamW once a tensor
                group["step"] = applied
            elif "betas" in group:
                for weight in group["params"]:
                    states[weight]["step"] = torch.tensor(float(applied))


def optimiser_settings(config: Config) -> dict[str, Any]:
    """The settings of the optimiser that the configuration gives; absent ones are the preset's."""
    beta1, beta2 = config.update.beta1, config.update.beta2
    betas = (0.9 if beta1 is None else beta1, 0.999 if beta2 is None else beta2)
    settings = {
        "betas": None if beta1 is beta2 is None else betas,
        "eps": config.update.optimiser_epsilon,
        "weight_decay": config.update.weight_decay,
        "debias": config.update.use_debiasing,
        "momentum": config.update.momentum,
    }
    return {name: value for name, value in settings.items() if value is not None}
