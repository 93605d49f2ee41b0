"""Weights and moments from checkpoints into the model and its strategy, and back."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from trainer.checkpoint.state import MOMENTS, State, read_tensors, save_checkpoint
from trainer.checkpoint.writer import CheckpointWriter
from trainer.errors import CheckpointError
from trainer.model.bert import HeadedBert
from trainer.run.runtime import Runtime
from trainer.update.strategy import Strategy


class ModelTensors(Protocol):
    """The tensors of a training; every worker makes each call."""

    def read_weights(self, path: str) -> None:
        """Load weights of any origin, and the moments where they are asked for."""
        ...

    def read(self, path: Path, saved: State, applied: int) -> None:
        """Load weights and moments of this trainer's checkpoint; applied: updates that made the moments."""
        ...

    def share(self) -> None:
        """Give all workers that hold the same weights the same values."""
        ...

    def are_finite(self) -> bool:
        """True if every weight of the whole model is a number."""
        ...

    def save(self, state: State, writer: CheckpointWriter) -> None:
        """Save, or start to save with the writer, which waits for nothing; the state has its counts."""
        ...


class WholeTensors:
    """Tensors of a model that every worker has as a whole: rank 0 reads, one worker a machine writes."""

    def __init__(self, runtime: Runtime, model: HeadedBert, strategy: Strategy) -> None:
        self._runtime, self._model, self._strategy = runtime, model, strategy

    def read_weights(self, path: str) -> None:
        from trainer.checkpoint.source import read_weights_into

        if not self._runtime.config.run.start_moments:
            self._runtime.share(lambda: read_weights_into(self._model, path))
        else:
            self._read_with_moments(path)

    def _read_with_moments(self, path: str) -> None:
        from trainer.checkpoint.filling import fill_model, read_moments
        from trainer.checkpoint.source import open_checkpoint

        moments: dict[str, Tensor] = {}

        def read() -> tuple[list[str], int]:
            checkpoint = open_checkpoint(path)
            fill_model(self._model, checkpoint)
            weights = dict(self._model.named_parameters())
            moments.update(read_moments(checkpoint, self._model.config, weights))
            if not moments:
                raise CheckpointError(f"{path}: holds no moments of an optimiser; leave out start_moments")
            return list(moments), checkpoint.updates or 0

        names, updates = self._runtime.share(read)
        self._load_moments(names, moments, updates)

    def read(self, path: Path, saved: State, applied: int) -> None:
        moments: dict[str, Tensor] = {}

        def read() -> list[str]:
            self._model.load_state_dict(read_tensors(path, saved))
            moments.update(read_tensors(path, saved, MOMENTS))
            return list(moments)

        self._load_moments(self._runtime.share(read), moments, applied)

    def share(self) -> None:
        self._runtime.workers.broadcast(self._model.state_dict().values())

    def _load_moments(self, names: Sequence[str], moments: Mapping[str, Tensor], applied: int) -> None:
        """Give every worker's strategy rank 0's moments of these names, made by so many updates."""
        weights = dict(self._model.named_parameters())
        moved = dict[str, Tensor]()
        for key in names:
            like = weights[key.partition("/")[2]]
            moved[key] = torch.zeros_like(like, dtype=torch.float32, requires_grad=False)
            moved[key].copy_(moments.get(key, torch.zeros(())))
        self._runtime.workers.broadcast(moved.values())
        self._strategy.load_moments(moved, applied)

    def are_finite(self) -> bool:
        return bool(torch.stack(torch._foreach_norm(list(self._model.parameters()))).isfinite().all())

    def save(self, state: State, writer: CheckpointWriter) -> None:
        if self._runtime.workers.local_rank == 0:
            config = self._runtime.config.run
            weights, moments = self._copied(self._model.state_dict()), self._copied(self._strategy.moments())
            keep = config.keep_checkpoints
            writer.start(partial(save_checkpoint, str(config.output_dir), state, weights, moments, keep))

    def _copied(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies in host memory, which the next update does not change."""
        return {name: self._runtime.device.copy_to_host(tensor) for name, tensor in tensors.items()}
