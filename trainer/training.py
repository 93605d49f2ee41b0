"""Model and optimiser, the state they are in, and how an update changes them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.batches import Batch
from trainer.checkpoint import MOMENTS, State, clean_up, read_state, read_tensors, save_checkpoint
from trainer.collectives import force_weight_sync
from trainer.config import Config
from trainer.data import Position, numbers
from trainer.errors import NotFiniteError
from trainer.model import BertForPreTraining
from trainer.optim import Schedule, clip_, make_optimiser, make_schedule
from trainer.runtime import Runtime, read_weights_into

_SCHEDULE_SETTINGS = {
    "mlperf": ("start_warmup_step", "power"),
    "nvidia-poly": ("power",),
    "natural_exponential": ("decay_rate", "decay_steps"),
    "custom": ("lr_schedule_by_step",),
}


class Training:
    """What one worker trains; all workers' weights and moments are the same to the bit."""

    def __init__(self, runtime: Runtime, model: BertForPreTraining, fresh: State) -> None:
        self.state = fresh
        self.learning_rate = 0.0
        self._runtime, self._model, self._config = runtime, model, runtime.config
        config, fixed = runtime.config, runtime.config.loss_scaling
        bounds = (config.init_loss_scale, config.min_loss_scale, config.max_loss_scale)
        initial, floor, ceiling = (fixed, fixed, fixed) if fixed else bounds
        self._scale = runtime.device.scaler(config.precision, initial=initial, floor=floor, ceiling=ceiling)
        self._schedule = find_schedule(config, runtime.workers.size)
        self._optimiser = make_optimiser(config.optimiser, model.named_parameters(), **_settings(config))
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]

    def start(self, kind: str, place: str) -> None:
        """Take weights, moments and state from where the run starts, the same on all workers."""
        runtime, path, number = self._runtime, Path(place), None
        if kind == "weights":
            runtime.share(lambda: read_weights_into(self._model, place))
        elif kind != "new":
            saved = State(**runtime.share(lambda: asdict(read_state(path))))
            if kind == "resumed":
                self.state = replace(saved, position=Position(*saved.position), config=self._config.as_json())
                self._scale.load_state_dict(saved.loss_scale)
                number = saved.number
            else:
                self.state = replace(self.state, phase_start=saved.number)
            self._read(path, saved)
        runtime.workers.broadcast(self._model.state_dict().values())
        if runtime.workers.local_rank == 0:
            clean_up(str(self._config.output_dir), after=number)

    def _read(self, path: Path, saved: State) -> None:
        """Weights into rank 0's model; moments, as KIND/NAME, into every worker's optimiser."""
        moments: dict[str, Tensor] = {}

        def read() -> list[str]:
            self._model.load_state_dict(read_tensors(path, saved))
            moments.update(read_tensors(path, saved, MOMENTS))
            return list(moments)

        weights = dict(self._model.named_parameters())
        states = self._optimiser.state
        for key in self._runtime.share(read):
            kind, _, name = key.partition("/")
            moment = moments.get(key, torch.zeros(()))
            states[weights[name]][kind] = torch.zeros_like(weights[name]).copy_(moment)
        self._runtime.workers.broadcast(_moments(self._optimiser, self._model).values())
        for group in self._optimiser.param_groups:
            if "step" in group:  # ours counts once a group, PyTorch's AdamW once a tensor
                group["step"] = self.state.applied
            elif "betas" in group:
                for weight in group["params"]:
                    states[weight]["step"] = torch.tensor(float(self.state.applied))

    def update(self, batches: Sequence[Batch]) -> Tensor:
        """Change the weights once; comes back with this worker's losses (means) and counts (sums)."""
        config, workers, state = self._config, self._runtime.workers, self.state
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
        config, workers, device = self._config, self._runtime.workers, self._runtime.device
        clips, count = config.clipping_point == "per_micro_batch", len(batches)
        sums, values = list[Tensor](), list[Tensor]()
        for number, batch in enumerate(batches):
            # Micro-batch q is the same whichever worker computes it, dropout included.
            micro_batch = workers.rank + workers.size * number
            key = (config.seed, "dropout", self.state.phase, self.state.step, micro_batch)
            device.seed(int(numbers(1, *key)[0] >> 1))
            losses = self._runtime.losses(self._model, batch)
            self._scale.scale(losses.total / count).backward()  # type: ignore[no-untyped-call]
            device.after_backward()
            values.append(torch.stack([*(mean.detach() / count for mean in losses[:3]), *losses[3:]]))
            if config.allreduce_post_accumulation and not clips:
                continue  # the gradients add up by themselves
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            if clips:
                clip_(gradients, config.max_grad_norm * self._scale.value / count)
            if not config.allreduce_post_accumulation:
                workers.average(gradients)
            if sums:
                torch._foreach_add_(sums, gradients)
            sums = sums or gradients
            self._optimiser.zero_grad()
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
        """Count an update of so many examples, after which training stands at the position."""
        step, trained = self.state.step + 1, self.state.trained + examples
        self.state = replace(self.state, step=step, trained=trained, position=position)

    def save(self) -> None:
        """Write a checkpoint on each machine; NotFiniteError where a weight is no number."""
        to_host, workers = self._runtime.device.to_host, self._runtime.workers
        if not torch.stack(torch._foreach_norm(self._weights)).isfinite().all():
            raise NotFiniteError(f"update {self.state.step}: a weight is no number, so nothing is saved")
        if workers.local_rank == 0:
            state = replace(self.state, loss_scale=self._scale.state_dict())
            tensors = self._model.state_dict(), _moments(self._optimiser, self._model)
            weights, moments = ({name: to_host(one) for name, one in found.items()} for found in tensors)
            place, keep = str(self._config.output_dir), self._config.keep_checkpoints
            save_checkpoint(place, state, weights, moments, keep)
        workers.barrier()


def find_schedule(config: Config, workers: int) -> Schedule:
    """The learning rate as a function of the update, counted from 0."""
    names = _SCHEDULE_SETTINGS.get(config.schedule, ())
    settings = {name: value for name in names if (value := getattr(config, name)) is not None}
    if config.schedule == "habana-tf":
        settings["adam"] = config.optimiser.startswith("adam")
    settings |= {"learning_rate": config.learning_rate(workers), "warmup": config.warmup}
    return make_schedule(config.schedule, steps=config.steps, **settings)


def _settings(config: Config) -> dict[str, Any]:
    """The optimiser's settings that are given."""
    beta1, beta2 = config.beta1, config.beta2
    betas = (0.9 if beta1 is None else beta1, 0.999 if beta2 is None else beta2)
    settings = {
        "betas": None if beta1 is beta2 is None else betas,
        "eps": config.optimiser_epsilon,
        "weight_decay": config.weight_decay,
        "debias": config.use_debiasing,
        "momentum": config.momentum,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _moments(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors as KIND/NAME; counts of updates are not among them."""
    return {
        f"{kind}/{name}": value
        for name, weight in model.named_parameters()
        for kind, value in optimiser.state.get(weight, {}).items()
        if isinstance(value, Tensor) and kind != "step"
    }
