"""The norm of all gradients as TensorFlow computes it, with embeddings' gradients counted row by row."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.settings import Config
from trainer.devices.clipping import compute_norms
from trainer.devices.device import Device
from trainer.model.headed import HeadedBert
from trainer.update.optimiser import Norms


def has_row_norms(config: Config, device: Device, workers: int) -> bool:
    """Return True if gradients are to be clipped by norms of embedding rows, and this run can do it.

    It is impossible on a device that ends updates itself or that compiles the model. It is also impossible
    if the clipped gradient comes from several micro-batches or workers, because the rows of only one
    micro-batch are recorded.
    workers: number of workers.
    """
    update = config.update
    if update.clipping_norm == "whole" or device.ends_updates or device.compiles:
        return False
    return update.clips_micro_batches or (workers == 1 and update.micro_batches(1)[1] == 1)


class RowNorms(Norms):
    """Norms of gradients in which each lookup in an embedding table counts separately.

    In TensorFlow, the gradient of a lookup has a row for each id that was looked up. The norm of all
    gradients uses these rows before the rows of equal ids are added. So an id that occurs twice, each time
    with gradient g, counts as 2 |g|^2 and not as |2 g|^2. The gradients themselves are the same.
    """

    def __init__(self, tables: Sequence[nn.Embedding]) -> None:
        """Start to record the lookups in embedding tables.

        tables: embeddings whose gradient comes only from lookups.
        """
        self._rows: dict[Tensor, Tensor] = {}
        self._tables = [table.weight for table in tables]
        for table in tables:
            table.register_forward_hook(self._record)

    def _record(self, table: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        """Record the gradient of a lookup's output, which has a row for each id."""
        if output.requires_grad:
            weight = table.weight
            assert isinstance(weight, Tensor)
            keep = partial(self._rows.__setitem__, weight)
            output.register_hook(keep)  # type: ignore[no-untyped-call]

    def compute_total(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the norm of all gradients of the most recent micro-batch, as a 0-dim tensor."""
        norms = self.compute_each(tensors).double()
        for table in self._tables:
            places = [place for place, one in enumerate(tensors) if one is table.grad]
            if places and table in self._rows:
                norms[places[0]] = compute_norms([self._rows.pop(table)])[0]
        norm: Tensor = torch.linalg.vector_norm(norms)
        return norm.float()


def find_row_tables(model: HeadedBert, config: Config) -> list[nn.Embedding]:
    """Return the model's embedding tables whose rows count separately, as configured.

    The word embeddings count as a whole if they are also the weights of the output layer. TensorFlow then
    adds the rows to the output layer's gradient before it computes the norm.
    """
    embeddings = model.bert.embeddings
    found = [] if model.ties_words else [embeddings.word_embeddings]
    types = getattr(embeddings, "token_type_embeddings", None)
    if types is not None and config.update.clipping_norm == "word_and_type_rows":
        found.append(types)
    return found
