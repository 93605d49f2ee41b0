"""The global norm as TensorFlow has it, with gradients of embeddings row by row."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.devices.clipping import norms_of
from trainer.devices.device import Device
from trainer.model.headed import HeadedBert
from trainer.update.optimiser import Norms


def has_row_norms(config: Config, device: Device, workers: int) -> bool:
    """True where clipping looks at the rows of embeddings, as configured. They are those of one micro-batch.

    Not where a device ends an update itself or compiles the model, nor where a gradient is clipped that
    several micro-batches or workers made.
    """
    update = config.update
    if update.clipping_norm == "whole" or device.own_step or device.compiles:
        return False
    return update.clips_micro_batches or (workers == 1 and update.micro_batches(1)[1] == 1)


class RowNorms(Norms):
    """Norms where each lookup in a table counts for itself in that of the whole model.

    TensorFlow's gradient of a lookup is a row for each id that was looked up, and its global norm takes these
    rows before those of equal ids are added. An id that comes twice with the gradient g then counts 2 |g|^2,
    not |2 g|^2. The gradients themselves are the same.
    """

    def __init__(self, tables: Sequence[nn.Embedding]) -> None:
        """tables: those whose gradient comes from lookups alone. Their lookups are recorded from now on."""
        self._rows: dict[Tensor, Tensor] = {}
        self._tables = [table.weight for table in tables]
        for table in tables:
            table.register_forward_hook(self._record)

    def _record(self, table: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        if output.requires_grad:
            weight = table.weight
            assert isinstance(weight, Tensor)
            keep = partial(self._rows.__setitem__, weight)
            output.register_hook(keep)  # type: ignore[no-untyped-call]

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        """0-dim: the norm of the gradients of the micro-batch that was last computed backwards."""
        norms = self.each(tensors).double()
        for table in self._tables:
            places = [place for place, one in enumerate(tensors) if one is table.grad]
            if places and table in self._rows:
                norms[places[0]] = norms_of([self._rows.pop(table)])[0]
        norm: Tensor = torch.linalg.vector_norm(norms)
        return norm.float()


def tables_of(model: HeadedBert, config: Config) -> list[nn.Embedding]:
    """Return the model's tables whose rows count, as configured.

    That of words counts whole where it is the output layer too: TensorFlow adds the rows to that gradient.
    """
    embeddings = model.bert.embeddings
    found = [] if model.ties_words else [embeddings.word_embeddings]
    types = getattr(embeddings, "token_type_embeddings", None)
    if types is not None and config.update.clipping_norm == "word_and_type_rows":
        found.append(types)
    return found
