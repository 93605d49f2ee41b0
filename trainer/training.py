"""What one worker trains: the state it is in, where it starts, and what a checkpoint keeps of it."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from trainer.checkpoint import MOMENTS, State, clean_up, read_state, read_tensors, save_checkpoint
from trainer.config import Config
from trainer.data.order import Position
from trainer.errors import NotFiniteError
from trainer.loader import Update
from trainer.model import BertForPreTraining
from trainer.optim import Schedule, make_schedule
from trainer.runtime import Runtime, read_weights_into

_SCHEDULE_SETTINGS = {
    "mlperf": ("start_warmup_step", "power"),
    "nvidia-poly": ("power",),
    "natural_exponential": ("decay_rate", "decay_steps"),
    "custom": ("lr_schedule_by_step",),
}


class Training:
    """All workers' weights and moments are the same to the bit."""

    def __init__(self, runtime: Runtime, model: BertForPreTraining, fresh: State) -> None:
        self.state = fresh
        self.origin = "new"
        self.learning_rate = 0.0
        self._runtime, self._model, self._config = runtime, model, runtime.config
        self._schedule = find_schedule(runtime.config, runtime.copies)
        self._engine = runtime.device.engine(runtime.workers, model)

    def start(self, kind: str, place: str) -> None:
        """Take weights, moments and state from where the run starts, the same on all workers."""
        runtime, path, number = self._runtime, Path(place), None
        self.origin = f"{kind} {place}".strip()
        if kind == "weights":
            runtime.share(lambda: read_weights_into(self._model, place))
        elif kind != "new":
            saved = State(**runtime.share(lambda: asdict(read_state(path))))
            if kind == "resumed":
                self.state = replace(saved, position=Position(*saved.position), config=self._config.as_json())
                self._engine.scale.load_state_dict(saved.loss_scale)
                number = saved.number
            else:
                self.state = replace(self.state, phase_start=saved.number)
            self._read(path, saved)
        runtime.workers.broadcast(self._model.state_dict().values())
        if runtime.workers.local_rank == 0:
            clean_up(str(self._config.output_dir), after=number)

    def _read(self, path: Path, saved: State) -> None:
        """Weights into rank 0's model; moments, as KIND/NAME, into every worker's engine."""
        moments: dict[str, Tensor] = {}

        def read() -> list[str]:
            self._model.load_state_dict(read_tensors(path, saved))
            moments.update(read_tensors(path, saved, MOMENTS))
            return list(moments)

        weights, placed = dict(self._model.named_parameters()), dict[str, Tensor]()
        for key in self._runtime.share(read):
            like = weights[key.partition("/")[2]]
            placed[key] = torch.zeros_like(like, dtype=torch.float32, requires_grad=False)
            placed[key].copy_(moments.get(key, torch.zeros(())))
        self._runtime.workers.broadcast(placed.values())
        self._engine.load_moments(placed, self.state.applied)

    def update(self, updates: Sequence[Update]) -> list[Tensor]:
        """Change the weights once for each; this worker's losses (means) and counts (sums) of each."""
        self.learning_rate = self._schedule(self.state.step)
        batches = [update.batches for update in updates]
        return self._engine.update(batches, self.learning_rate, self.state)

    def compile(self, updates: Sequence[Update]) -> None:
        """Compile what such updates need, and no more."""
        self._engine.compile([update.batches for update in updates], self.state)

    def advance(self, position: Position, examples: int) -> None:
        """Count an update of so many examples, after which training stands at the position."""
        step, trained, applied = self.state.step + 1, self.state.trained + examples, self._engine.applied
        self.state = replace(self.state, step=step, applied=applied, trained=trained, position=position)

    def save(self) -> None:
        """Write a checkpoint on each machine; NotFiniteError where a weight is no number."""
        to_host, workers, engine = self._runtime.device.to_host, self._runtime.workers, self._engine
        engine.fetch()
        if not torch.stack(torch._foreach_norm(list(self._model.parameters()))).isfinite().all():
            raise NotFiniteError(f"update {self.state.step}: a weight is no number, so nothing is saved")
        if workers.local_rank == 0:
            state = replace(self.state, loss_scale=engine.scale.state_dict())
            tensors = self._model.state_dict(), engine.moments()
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
