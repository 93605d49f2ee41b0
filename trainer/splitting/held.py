"""The weights of a split model that one worker holds.

These are all weights of the worker's stage, or only some rows of each weight if the stage is sharded.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch.distributed as dist
from torch import Tensor, nn

from trainer.model.headed import HeadedBert
from trainer.update.optimiser import LOCAL_NORMS, Norms, Optimiser
from trainer.update.worker import ModelShare

WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
"""Name of the word embeddings.

If the heads use the word embeddings as output weights too ("tied"), the first and the last
stage each have a copy.
"""


class WeightPart(NamedTuple):
    """The rows of one of the model's tensors that this worker holds.

    The tensor is either a weight or a moment of the optimiser.
    name: the weight's name, or KIND/NAME for a moment, such as "exp_avg/bert.pooler.dense.weight".
    shape: shape of the whole tensor. A tensor without dimensions counts as one row.
    start: number of the first row that this worker holds.
    rows: the values of these rows, which may be overwritten. It is empty if the worker holds no row.
    writes: whether this worker writes the rows to a checkpoint. False if another worker holds and
        writes the same rows.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool

    def fill(self, whole: Tensor) -> None:
        """Copy the rows that this worker holds out of the whole tensor."""
        self.rows.copy_(whole[self.start : self.start + len(self.rows)] if self.shape else whole)


class HeldWeights:
    """The weights of this worker's stage, or the worker's rows of these weights if the stage is sharded.

    Create the object while FSDP2 has not gathered any weight.
    parameters: plain parameters for an optimiser, by name. They share memory with the rows, which are
        PyTorch's DTensors.
    norms: object that computes the norms of whole weights and gradients.
    sizes: for each sharded weight, the number of elements on the process that holds the most rows. Empty
        without sharding.
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
                # Use the number of elements on the process that holds the most rows, so that all processes
                # use the same number.
                self.sizes[parameter] = ceil(weight.numel() / mesh.size())

    def list_gradients(self) -> list[Tensor]:
        """Return the gradients of all parameters that have a gradient.

        For a sharded stage these are the gradients of the rows that this worker holds.
        """
        if self.is_sharded:
            for name, parameter in self.parameters.items():
                weight = self._weights[name]
                # Read the rows again, because PyTorch may have moved them in the first pass.
                parameter.data = weight.detach().to_local()
                parameter.grad = None if weight.grad is None else weight.grad.to_local()
        return [parameter.grad for parameter in self.parameters.values() if parameter.grad is not None]

    def free_gradients(self) -> None:
        """Free the memory of all gradients."""
        for weight in (*self._weights.values(), *self.parameters.values()):
            weight.grad = None

    def weight_parts(self) -> list[WeightPart]:
        """Return the stage's weights, and mark which of them this worker writes to a checkpoint.

        If the stage is sharded, each worker with this stage writes the rows that it holds. Otherwise these
        workers all hold the same weights, and each of them writes a share of the tensors.
        """
        parts, division = [], self._division
        for number, (name, weight) in enumerate(self._weights.items()):
            rows, start, writes = weight.detach(), 0, number % division.copies == division.copy
            if self.is_sharded:
                rows, start, writes = rows.to_local(), find_first_row(weight), True
            writes = writes and not is_copied_embedding(name, division)
            parts.append(WeightPart(name, tuple(weight.shape), start, rows, writes))
        return parts

    def moment_parts(self, optimiser: Optimiser) -> list[WeightPart]:
        """Return the optimiser's moments for the weights that this worker holds.

        Moments are zero before the first update.
        """
        parts = {self.parameters[part.name]: part for part in self.weight_parts()}
        return [
            parts[weight]._replace(name=f"{kind}/{parts[weight].name}", rows=optimiser.moment(weight, kind))
            for group in optimiser.param_groups
            for weight in group["params"]
            for kind in optimiser.moments
        ]


def find_first_row(weight: Any) -> int:
    """Return the number of the first row of a sharded weight that this process holds.

    FSDP2 divides the rows as ``torch.chunk`` does.
    """
    mesh, rows = weight.device_mesh, int(weight.shape[0])
    return min(int(mesh.get_local_rank()) * ceil(rows / int(mesh.size())), rows)


def is_copied_embedding(name: str, division: ModelShare) -> bool:
    """Return True if the name is that of the tied word embeddings and this worker has the last
    stage's copy of them.

    The copy is left out where each weight must count once, for example in a checkpoint.
    """
    return name == WORD_EMBEDDINGS and division.stage > 0


class ShardNorms(Norms):
    """Norms of whole weights and gradients whose rows are divided among the processes of a group."""

    def __init__(self, group: dist.ProcessGroup, sizes: Mapping[Tensor, int]) -> None:
        """Create the object.

        group: the processes that share the weights.
        sizes: number of elements of each whole weight.
        """
        self._group, self._sizes = group, sizes

    def count_elements(self, weight: Tensor) -> int:
        return self._sizes[weight]

    def compute_each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._combine_processes(LOCAL_NORMS.compute_each(tensors))

    def compute_total(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._combine_processes(LOCAL_NORMS.compute_total(tensors))

    def _combine_processes(self, norms: Tensor) -> Tensor:
        """Return the norms of the whole tensors, from the norms of the rows that this process holds."""
        squares = norms.square()
        dist.all_reduce(squares, group=self._group)
        return squares.sqrt_()
