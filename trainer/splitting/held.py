"""The weights that a worker holds of a split model, or the rows of them."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor, nn

from trainer.model.headed import HeadedBert
from trainer.update.optimiser import LOCAL_NORMS, Norms, Optimiser
from trainer.update.worker import Division

TIED = "bert.embeddings.word_embeddings.weight"
"""The weight that the first and the last stage both have, where the heads use it."""


class WeightPart(NamedTuple):
    """Rows of a weight, or of a moment (KIND/NAME), that this worker holds.

    shape: that of the whole; without dimensions it counts as one row. start: number of the first row.
    rows: the values themselves, in whose place others may be put; there may be none. writes: False where
    another worker writes the same rows into a checkpoint.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool

    def fill(self, whole: Tensor) -> None:
        """Copy the own rows of the whole tensor."""
        self.rows.copy_(whole[self.start : self.start + len(self.rows)] if self.shape else whole)


class Held:
    """The weights of this worker's stage: of a sharded one the rows that PyTorch's DTensors have here.

    Make it while nothing is gathered. parameters: by name, as plain ones for an optimiser, which share memory
    with the rows. norms, sizes: those of ``Optimiser``.
    """

    def __init__(self, model: HeadedBert, division: Division) -> None:
        self._division = division
        self._weights: dict[str, Any] = dict(model.named_parameters())
        self.parameters: dict[str, nn.Parameter] = dict(self._weights)
        self.norms: Norms = LOCAL_NORMS
        self.sizes: dict[Tensor, int] = {}
        mesh = getattr(next(iter(self._weights.values())), "device_mesh", None)
        self.is_sharded = mesh is not None
        if mesh is not None:
            whole_sizes: dict[Tensor, int] = {}
            self.norms = ShardNorms(mesh.get_group(), whole_sizes)
            for name, weight in self._weights.items():
                parameter = nn.Parameter(weight.detach().to_local(), weight.requires_grad)
                self.parameters[name], whole_sizes[parameter] = parameter, weight.numel()
                self.sizes[parameter] = ceil(weight.numel() / mesh.size())  # most rows of a process

    def take_gradients(self) -> list[Tensor]:
        """The gradients of the parameters that have one."""
        if self.is_sharded:
            for name, parameter in self.parameters.items():
                weight = self._weights[name]
                parameter.data = weight.detach().to_local()  # PyTorch may have moved them at the first pass
                parameter.grad = None if weight.grad is None else weight.grad.to_local()
        return [parameter.grad for parameter in self.parameters.values() if parameter.grad is not None]

    def drop_gradients(self) -> None:
        """Free the gradients."""
        for weight in (*self._weights.values(), *self.parameters.values()):
            weight.grad = None

    def weight_parts(self) -> list[WeightPart]:
        """The stage's weights. Its copies take turns in writing them, or each writes its own rows."""
        parts, division = [], self._division
        for number, (name, weight) in enumerate(self._weights.items()):
            rows, start, writes = weight.detach(), 0, number % division.copies == division.copy
            if self.is_sharded:
                rows, start, writes = rows.to_local(), first_row(weight), True
            writes = writes and not is_second(name, division)
            parts.append(WeightPart(name, tuple(weight.shape), start, rows, writes))
        return parts

    def moment_parts(self, optimiser: Optimiser) -> list[WeightPart]:
        """The optimiser's tensors of the parameters, zeros before the first update."""
        parts = {self.parameters[part.name]: part for part in self.weight_parts()}
        return [
            parts[weight]._replace(name=f"{kind}/{parts[weight].name}", rows=optimiser.moment(weight, kind))
            for group in optimiser.param_groups
            for weight in group["params"]
            for kind in optimiser.moments
        ]


def first_row(weight: Any) -> int:
    """The number of the first row here: torch.chunk's, by which FSDP2 divides."""
    mesh, rows = weight.device_mesh, int(weight.shape[0])
    return min(int(mesh.get_local_rank()) * ceil(rows / int(mesh.size())), rows)


def is_second(name: str, division: Division) -> bool:
    """True for the tied weight where it is the last stage's."""
    return name == TIED and division.stage > 0


class ShardNorms(Norms):
    """Norms of weights and gradients whose rows are divided among the processes of a group."""

    def __init__(self, group: dist.ProcessGroup, sizes: Mapping[Tensor, int]) -> None:
        """sizes: elements of the whole of each weight."""
        self._group, self._sizes = group, sizes

    def size(self, weight: Tensor) -> int:
        return self._sizes[weight]

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.each(tensors))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.all(tensors))

    def _of(self, norms: Tensor) -> Tensor:
        """The norms of the whole, of which these are those of the own rows."""
        squares = norms.square()
        dist.all_reduce(squares, group=self._group)
        return squares.sqrt_()
