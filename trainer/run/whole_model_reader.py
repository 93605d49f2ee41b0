"""Weights and moments from checkpoints into a model that every worker has as a whole."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from trainer.checkpoint.filling import fill_model, match_moments
from trainer.checkpoint.reading import read_tensors
from trainer.checkpoint.source import open_checkpoint, read_weights_into
from trainer.checkpoint.state import MOMENTS, State
from trainer.errors import CheckpointError
from trainer.model.bert import HeadedBert
from trainer.run.runtime import Runtime
from trainer.update.strategy import Strategy


class WholeModelReader:
    """Reads on rank 0 into the model, and into the moments of every worker's strategy."""

    def __init__(self, runtime: Runtime, model: HeadedBert, strategy: Strategy) -> None:
        self._runtime, self._model, self._strategy = runtime, model, strategy

    def read_weights(self, path: str) -> None:
        """Load weights of any origin, and the moments where they are asked for."""
        if not self._runtime.config.run.start_moments:
            self._runtime.on_rank_0(lambda: read_weights_into(self._model, path))
        else:
            self._read_with_moments(path)

    def _read_with_moments(self, path: str) -> None:
        moments: dict[str, Tensor] = {}

        def read() -> tuple[list[str], int]:
            checkpoint = open_checkpoint(path)
            fill_model(self._model, checkpoint)
            weights = dict(self._model.named_parameters())
            found = match_moments(weights, self._model.config, checkpoint)
            moments.update({key: moment.read() for key, moment in found.items()})
            if not moments:
                raise CheckpointError(f"{path}: holds no moments of an optimiser; leave out start_moments")
            return list(moments), checkpoint.updates or 0

        names, updates = self._runtime.on_rank_0(read)
        self._load_moments(names, moments, updates)

    def read(self, path: Path, saved: State, applied: int) -> None:
        """Load weights and moments of this trainer's checkpoint. applied: updates that made the moments."""
        moments: dict[str, Tensor] = {}

        def read() -> list[str]:
            self._model.load_state_dict(read_tensors(path, saved))
            moments.update(read_tensors(path, saved, MOMENTS))
            return list(moments)

        self._load_moments(self._runtime.on_rank_0(read), moments, applied)

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
