"""Model and optimiser, the state they are in, and how an update changes them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.batches import Batch
from trainer.checkpoint import State, read_state, read_tensors, save_checkpoint
from trainer.collectives import force_weight_sync
from trainer.config import Config
from trainer.errors import NotFiniteError
from trainer.model import BertForPreTraining
from trainer.optim import Schedule, clip_, make_optimiser, make_schedule
from trainer.order import Position, numbers
from trainer.origin import Origin
from trainer.runtime import Runtime, read_weights_into

MEANS = ("total", "masked_lm", "next_sentence")
SUMS = ("masked_lm_correct", "masked_lm_weight", "nsp_correct", "nsp_count")
"""What an update says of its losses."""


class Training:
    """Model and optimiser, the state they are in, and how one update changes them."""

    def __init__(self, runtime: Runtime, model: BertForPreTraining, fresh: State) -> None:
        self.state = fresh
        self.learning_rate = 0.0
        self._runtime = runtime
        self._model = model
        config = runtime.config
        self._config = config
        self._schedule = find_schedule(config, runtime.workers.size)
        self._optimiser = make_optimiser(config.optimiser, model.named_parameters(), **_given(config))
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        fixed = config.loss_scaling or None
        self._scale = runtime.device.scaler(
            config.precision,
            initial=fixed or config.init_loss_scale,
            floor=fixed or config.min_loss_scale,
            ceiling=fixed or config.max_loss_scale,
        )

    def start(self, origin: Origin) -> None:
        """Take weights, moments and state from where the run starts, the same on all workers."""
        share, path = self._runtime.share, Path(origin.path or "")
        if origin.kind == "weights":
            share(partial(read_weights_into, self._model, str(origin.path)))
        elif origin.kind != "new":
            self._restore(path, State(**share(lambda: _as_json(read_state(path)))), origin.kind)
        self._runtime.workers.broadcast(self._model.state_dict().values())

    def _restore(self, path: Path, state: State, kind: str) -> None:
        if kind == "phase2":
            self.state = replace(self.state, phase_start=state.number)
        else:
            position = (state.position[0], state.position[1])
            self.state = replace(state, position=position, config=self._config.as_json())
            self._scale.load_state_dict(state.loss_scale)

        def read() -> dict[str, Tensor]:
            weights, moments = read_tensors(path)
            self._model.load_state_dict(weights)
            return moments

        _load_moments(self._optimiser, self._model, self._runtime.share_tensors(read), self.state.applied)

    def update(self, batches: Sequence[Batch]) -> Tensor:
        """Change the weights once; comes back with this worker's losses (means) and counts (sums)."""
        config, workers, state = self._config, self._runtime.workers, self.state
        self._model.train()
        values = self._accumulate(batches)
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        if config.allreduce_post_accumulation:
            half = torch.bfloat16 if config.precision == "bf16" else torch.float16
            workers.average(gradients, half if config.allreduce_post_accumulation_fp16 else None)
        self._scale.unscale(gradients)
        force_weight_sync(workers, self._weights, config.force_weight_sync)
        if self._clip(gradients):
            self.learning_rate = self._schedule(state.step)
            for group in self._optimiser.param_groups:
                group["lr"] = self.learning_rate
            self._optimiser.step()
            self.state = replace(state, applied=state.applied + 1)
        self._runtime.device.after_step()
        self._optimiser.zero_grad()
        return values

    def _accumulate(self, batches: Sequence[Batch]) -> Tensor:
        """Leave the mean of the micro-batches' gradients, times the loss scale, in the weights' grad."""
        config, workers, device, count = (
            self._config,
            self._runtime.workers,
            self._runtime.device,
            len(batches),
        )
        clips = config.clipping_point == "per_micro_batch"
        apart = clips or not config.allreduce_post_accumulation
        sums: list[Tensor] = []
        values: list[Tensor] = []
        for number, batch in enumerate(batches):
            # Micro-batch q is the same whichever worker computes it, dropout included.
            micro_batch = workers.rank + workers.size * number
            key = (config.seed, "dropout", self.state.phase, self.state.step, micro_batch)
            device.seed(int(numbers(1, *key)[0] >> 1))
            losses = self._runtime.losses(self._model, batch)
            self._scale.scale(losses.total / count).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            means = [getattr(losses, name).detach() / count for name in MEANS]
            values.append(torch.stack([*means, *(getattr(losses, name) for name in SUMS)]))
            if apart:
                gradients = [weight.grad for weight in self._weights if weight.grad is not None]
                if clips:
                    clip_(gradients, config.max_grad_norm * self._scale.value / count)
                if not config.allreduce_post_accumulation:
                    workers.average(gradients)
                if sums:
                    torch._foreach_add_(sums, gradients)
                sums = sums or gradients
                self._model.zero_grad()
        for weight, gradient in zip(self._weights, sums, strict=bool(sums)):
            weight.grad = gradient
        return torch.stack(values).sum(0)

    def _clip(self, gradients: list[Tensor]) -> bool:
        """Clip what was averaged, if now is the time; whether the update may be made."""
        clips, judges = self._config.clipping_point == "per_update", self._config.precision == "fp16"
        if not clips and not judges:
            return True
        norm = clip_(gradients, self._config.max_grad_norm if clips else math.inf)
        try:
            return not judges or self._scale.update(float(norm))
        except NotFiniteError as error:
            raise NotFiniteError(f"update {self.state.step + 1}: {error}") from None

    def advance(self, position: Position, examples: int) -> None:
        """Count an update, after which training stands at the position."""
        state = self.state
        self.state = replace(state, step=state.step + 1, trained=state.trained + examples, position=position)

    def save(self) -> None:
        """Write a checkpoint on each machine; NotFiniteError where a weight is no number."""
        runtime, config = self._runtime, self._config
        if not torch.stack(torch._foreach_norm(self._weights)).isfinite().all():
            raise NotFiniteError(f"update {self.state.step}: a weight is no number, so nothing is saved")
        if runtime.workers.local_rank == 0:
            state = replace(self.state, loss_scale=self._scale.state_dict())
            weights, moments = self._model.state_dict(), _moments(self._optimiser, self._model)
            save_checkpoint(
                str(config.output_dir),
                state,
                runtime.on_host(weights),
                runtime.on_host(moments),
                config.keep_checkpoints,
            )
        runtime.workers.barrier()


def _as_json(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in State.__dataclass_fields__}


def _given(config: Config) -> dict[str, Any]:
    """The optimiser's settings that are given."""
    settings: dict[str, Any] = {
        "eps": config.optimiser_epsilon,
        "weight_decay": config.weight_decay,
        "debias": config.use_debiasing,
        "momentum": config.momentum,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    if config.beta1 is not None or config.beta2 is not None:
        beta1 = 0.9 if config.beta1 is None else config.beta1
        given["betas"] = (beta1, 0.999 if config.beta2 is None else config.beta2)
    return given


def find_schedule(config: Config, workers: int) -> Schedule:
    """The learning rate as a function of the update, counted from 0."""
    name = config.schedule
    settings: dict[str, Any] = {"power": config.power}
    if name == "mlperf":
        settings["start_warmup_step"] = config.start_warmup_step
    elif name == "habana-tf":
        settings["adam"] = config.optimiser.startswith("adam")
    elif name == "natural_exponential":
        settings |= {"decay_rate": config.decay_rate, "decay_steps": config.decay_steps}
    elif name == "custom":
        settings["lr_schedule_by_step"] = config.lr_schedule_by_step
    return make_schedule(
        name,
        learning_rate=config.learning_rate(workers),
        steps=config.steps,
        warmup=config.warmup,
        **{key: value for key, value in settings.items() if value is not None},
    )


def _moments(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors as KIND/NAME; counts of updates are not among them."""
    found = {}
    for name, weight in model.named_parameters():
        for kind, value in optimiser.state.get(weight, {}).items():
            if isinstance(value, Tensor) and value.shape == weight.shape and kind != "step":
                found[f"{kind}/{name}"] = value
    return found


def _load_moments(
    optimiser: torch.optim.Optimizer, model: nn.Module, moments: dict[str, Tensor], applied: int
) -> None:
    """Give the optimiser its tensors, and let it count updates from ``applied`` on."""
    weights = dict(model.named_parameters())
    for key, tensor in moments.items():
        kind, _, name = key.partition("/")
        optimiser.state[weights[name]][kind] = tensor
    for group in optimiser.param_groups:
        if "step" in group:  # ours counts once a group, PyTorch's AdamW once a tensor
            group["step"] = applied
        elif "betas" in group:
            for weight in group["params"]:
                optimiser.state[weight]["step"] = torch.tensor(float(applied))
