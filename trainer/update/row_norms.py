"""The global norm as TensorFlow has it, with the gradient of the word embeddings row by row."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.devices.clipping import norms_of
from trainer.devices.device import Device
from trainer.update.optimiser import Norms


def has_row_norms(config: Config, device: Device, workers: int) -> bool:
    """True where clipping looks at the rows of words, as configured. They are those of one micro-batch.

    Not where a device ends an update itself or compiles the model, nor where a gradient is clipped that
    several micro-batches or workers made.
    """
    update = config.update
    if update.clipping_norm == "whole" or device.own_step or device.compiles:
        return False
    return update.clips_micro_batches or (workers == 1 and update.micro_batches(1)[1] == 1)


class RowNorms(Norms):
    """Norms where the looked-up words of a micro-batch count each for itself in that of the whole model.

    TensorFlow's gradient of a lookup is a row for each word that was looked up, and its global norm takes
    these rows before those of equal words are added. A word that comes twice with the gradient g then counts
    2 |g|^2, not |2g|^2. Where the table is the words' output layer as well, the gradient of that layer counts
    apart from the rows too. The gradients themselves are the same.
    """

    def __init__(self, words: nn.Embedding) -> None:
        """words: the table. Its lookups with gradients are recorded from now on."""
        self._weight = words.weight
        self._rows: list[tuple[Tensor, Tensor]] = []
        words.register_forward_hook(self._record)

    def _record(self, module: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        if output.requires_grad:
            ids = given[0].reshape(-1).long()
            output.register_hook(lambda gradient: self._rows.append((ids, gradient.detach())))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        """0-dim: the norm of the gradients of the micro-batch that was last computed backwards."""
        norms = self.each(tensors).double()
        gradient = self._weight.grad
        places = [place for place, one in enumerate(tensors) if one is gradient]
        if places and gradient is not None and self._rows:
            # Without the rows what is left is the gradient of the output layer, zeros without one.
            (ids, rows), self._rows = self._rows[-1], []
            left = gradient.index_add(0, ids, rows.reshape(len(ids), -1).to(gradient.dtype), alpha=-1)
            parts = norms_of([left, rows]).double()
            norms[places[0]] = torch.linalg.vector_norm(parts)
        norm: Tensor = torch.linalg.vector_norm(norms)
        return norm.float()
