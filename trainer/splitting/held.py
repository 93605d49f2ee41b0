"""The weights of a split model that a worker holds: all weights of its stage, or some rows of each."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor, nn

from trainer.model.headed import HeadedBert
from trainer.update.optimiser import LOCAL_NORMS, Norms, Optimiser
from trainer.update.worker import ModelShare

TIED = "bert.embeddings.word_embeddings.weight"
"""Name of the word embeddings. If the heads use them too, both the first and the last stage have them."""


class WeightPart(NamedTuple):
    """The rows of one tensor of the model that this worker holds.

    The tensor is either a weight or a moment of the optimiser. A moment's name is KIND/NAME.

    shape: shape of the whole tensor. A tensor without dimensions counts as one row. start: number of the
    first row held here. rows: the values, which may be overwritten. There may be no rows. writes: False if
    another worker writes the same rows to a checkpoint.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool

    def fill(self, whole: Tensor) -> None:
        """Copy this worker's rows from the whole tensor."""
        self.rows.copy_(whole[self.start : self.start + len(self.rows)] if self.shape else whole)


class HeldWeights:
    """The weights of this worker's stage. If the stage is sharded, they are the rows that this worker holds.

    Create it while no weights are gathered. parameters: plain parameters for an optimiser, by name. They
    share memory with the rows, which are PyTorch's DTensors. norms: object that computes norms of whole
    weights and gradients. sizes: for sharded weights, the number of elements on the process that holds the
    most. Otherwise empty.
    """

    def __init__(self, model: HeadedBert, division: ModelShare) -> None:
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
                # Elements on the process that holds the most, so that all processes use the same number.
                self.sizes[parameter] = ceil(weight.numel() / mesh.size())

    def take_gradients(self) -> list[Tensor]:
        """Return the gradients of all parameters that have a gradient."""
        if self.is_sharded:
            for name, parameter in self.parameters.items():
                weight = self._weights[name]
                parameter.data = (
                    weight.detach().to_local()
                )  # read again, because PyTorch may have moved the rows in the first pass
                parameter.grad = None if weight.grad is None else weight.grad.to_local()
        return [parameter.grad for parameter in self.parameters.values() if parameter.grad is not None]

    def drop_gradients(self) -> None:
        """Free the gradients."""
        for weight in (*self._weights.values(), *self.parameters.values()):
            weight.grad = None

    def weight_parts(self) -> list[WeightPart]:
        """Return the stage's weights.

        If the stage is sharded, each copy of the stage writes the rows that it holds to a checkpoint.
        Otherwise every copy holds the same weights, and each copy writes some of them.
        """
        parts, division = [], self._division
        for number, (name, weight) in enumerate(self._weights.items()):
            rows, start, writes = weight.detach(), 0, number % division.copies == division.copy
            if self.is_sharded:
                rows, start, writes = rows.to_local(), find_first_row(weight), True
            writes = writes and not is_second_copy(name, division)
            parts.append(WeightPart(name, tuple(weight.shape), start, rows, writes))
        return parts

    def moment_parts(self, optimiser: Optimiser) -> list[WeightPart]:
        """Return the optimiser's moments for the weights held here. They are zero before the first update."""
        parts = {self.parameters[part.name]: part for part in self.weight_parts()}
        return [
            parts[weight]._replace(name=f"{kind}/{parts[weight].name}", rows=optimiser.moment(weight, kind))
            for group in optimiser.param_groups
            for weight in group["params"]
            for kind in optimiser.moments
        ]


def find_first_row(weight: Any) -> int:
    """Return the number of the first row held here. FSDP2 divides rows as torch.chunk does."""
    mesh, rows = weight.device_mesh, int(weight.shape[0])
    return min(int(mesh.get_local_rank()) * ceil(rows / int(mesh.size())), rows)


def is_second_copy(name: str, division: ModelShare) -> bool:
    """Return True for the last stage's copy of the tied word embeddings."""
    return name == TIED and division.stage > 0


class ShardNorms(Norms):
    """Norms of weights and gradients whose rows are divided among the processes of a group."""

    def __init__(self, group: dist.ProcessGroup, sizes: Mapping[Tensor, int]) -> None:
        """Create the norms of this process's weights. sizes: number of elements of each whole weight."""
        self._group, self._sizes = group, sizes

    def size(self, weight: Tensor) -> int:
        return self._sizes[weight]

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.each(tensors))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(LOCAL_NORMS.all(tensors))

    def _of(self, norms: Tensor) -> Tensor:
        """Return the norms of whole tensors from the norms of this process's rows."""
        squares = norms.square()
        dist.all_reduce(squares, group=self._group)
        return squares.sqrt_()
