"""Weights divided by rows among the processes of a mesh, by FSDP2 (Zhao et al. 2023).

Each layer is gathered for its own passes and freed after them; embeddings, pooler and heads together are
gathered for the whole of a forward and backward pass. A gradient's mean over the processes goes to those that
hold its rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.devices.device import Device
from trainer.extensions.splitting.split_strategy import WeightPart, moments_of
from trainer.model.bert import HeadedBert
from trainer.model.layers import Absent, Norm
from trainer.update.optimiser import Norms, Optimiser
from trainer.update.strategy import Division

Mesh = Any
"""torch.distributed.DeviceMesh of one dimension; imported only where it is used."""

Policy = Any
"""torch.distributed.fsdp.MixedPrecisionPolicy, likewise."""


def copies_mesh(device: Device, division: Division) -> Mesh:
    """The processes that have this worker's stage, in a group of their own. All workers must make the call.

    The group of all workers stays the collective's alone, which can then end its threads: one that is left
    when the interpreter ends may crash it.
    """
    from torch.distributed.device_mesh import DeviceMesh

    for stage in range(division.stages):
        first = stage * division.copies
        group = dist.new_group(range(first, first + division.copies))
        if stage == division.stage:
            own = group
    return DeviceMesh.from_group(own, device.torch_device.type)


_HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def shard_(model: HeadedBert, mesh: Mesh, precision: str, sum_type: torch.dtype | None = None) -> None:
    """Divide the weights of a model, or of a stage, on the meta device: each layer, then all the rest.

    In 16 bits a layer is gathered in them, all but its norms, so that autocast finds products' weights as
    it would make them, and keeps none for the backward pass. sum_type: the type in which gradients are
    added up; None: fp32.
    """
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    def policy(dtype: torch.dtype | None) -> Policy:
        return sharding_policy(dtype, sum_type)

    half = _HALF.get(precision)
    for layer in model.bert.encoder.layer:
        if isinstance(layer, Absent):
            continue
        layer.attention.self.joins = False  # type: ignore[union-attr]
        norms: list[nn.Module] = [module for module in layer.modules() if isinstance(module, Norm)]
        if half is not None:
            fully_shard(norms, mesh=mesh, mp_policy=policy(None), reshard_after_forward=False)
        fully_shard(layer, mesh=mesh, mp_policy=policy(half))
    is_last = not isinstance(model.bert.pooler, Absent)
    fully_shard(model if is_last else model.bert, mesh=mesh, mp_policy=policy(None))
    if not is_last:
        register_fsdp_forward_method(model.bert, "encode")  # the method that a stage before the last calls


def sharding_policy(dtype: torch.dtype | None, sum_type: torch.dtype | None) -> Policy:
    """The types in which weights are gathered and gradients added up. None: the weights' own, and fp32."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    sums = sum_type or torch.float32
    return MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=sums, cast_forward_inputs=False)


def fill_shards(model: nn.Module, values: Iterable[tuple[str, Tensor]]) -> None:
    """Copy each whole weight's own rows into the model's shard. values: names and whole weights."""
    shards = {shard.name: shard for shard in find_shards(model)}
    for name, whole in values:
        if name in shards:
            rows = shards[name].rows
            rows.copy_(whole[shards[name].start :][: len(rows)])


def gather_no_more(model: nn.Module) -> None:
    """Free gathered weights, which a pass without gradients leaves and which would get out of date."""
    for module in model.modules():
        if hasattr(module, "reshard"):
            module.reshard()  # type: ignore[operator]


class WeightShard(NamedTuple):
    """A weight of which this process holds rows from number ``start`` on. weight: PyTorch's DTensor."""

    name: str
    weight: Any
    start: int

    @property
    def rows(self) -> Tensor:
        """The rows themselves, of which there may be none."""
        rows: Tensor = self.weight.detach().to_local()
        return rows

    @property
    def size(self) -> int:
        """Values of the weight that a process holds at most: the same on all."""
        return ceil(int(self.weight.numel()) / int(self.weight.device_mesh.size()))


def find_shards(model: nn.Module) -> list[WeightShard]:
    """The shards of a model's weights, in its order. Call it while nothing is gathered."""
    return [WeightShard(name, weight, _first_row(weight)) for name, weight in model.named_parameters()]


def _first_row(weight: Any) -> int:
    """The number of the first row here: torch.chunk's, by which FSDP2 divides."""
    mesh, rows = weight.device_mesh, int(weight.shape[0])
    most = ceil(rows / int(mesh.size()))
    return min(int(mesh.get_local_rank()) * most, rows)


class Held:
    """The shards of a model as an optimiser's plain parameters, which share memory with them."""

    def __init__(self, model: nn.Module) -> None:
        self.shards = find_shards(model)
        self.group = self.shards[0].weight.device_mesh.get_group()
        self.parameters = [nn.Parameter(shard.rows, shard.weight.requires_grad) for shard in self.shards]

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Name and own rows of each weight."""
        for shard, parameter in zip(self.shards, self.parameters, strict=True):
            yield shard.name, parameter

    def sizes(self) -> dict[Tensor, int]:
        """Shard.size of each parameter."""
        return {p: shard.size for shard, p in zip(self.shards, self.parameters, strict=True)}

    def take_gradients(self) -> list[Tensor]:
        """Give the parameters the weights' gradients, where there are any."""
        gradients = []
        for shard, parameter in zip(self.shards, self.parameters, strict=True):
            parameter.data = shard.rows  # PyTorch may have moved them at the first pass
            found = shard.weight.grad
            parameter.grad = None if found is None else found.to_local()
            gradients += [] if parameter.grad is None else [parameter.grad]
        return gradients

    def drop_gradients(self) -> None:
        """Free the gradients."""
        for shard, parameter in zip(self.shards, self.parameters, strict=True):
            shard.weight.grad = parameter.grad = None

    def weight_parts(self) -> list[WeightPart]:
        """The own rows of each weight."""
        return [self._part(shard, shard.name, shard.rows) for shard in self.shards]

    def moment_parts(self, optimiser: Optimiser) -> list[WeightPart]:
        """This worker's rows of each moment, zeros before the first update."""
        shards = dict[Tensor, WeightShard](zip(self.parameters, self.shards, strict=True))
        return [
            self._part(shards[parameter], f"{kind}/{shards[parameter].name}", moment)
            for parameter, kind, moment in moments_of(optimiser)
        ]

    def _part(self, shard: WeightShard, name: str, rows: Tensor) -> WeightPart:
        return WeightPart(
            name=name, shape=tuple(shard.weight.shape), start=shard.start, rows=rows, writes=True
        )


class ShardNorms(Norms):
    """Norms of weights and gradients whose rows are divided among the processes of a group."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group

    def each(self, tensors: Sequence[Tensor]) -> Tensor:
        return self._of(torch.stack(list(torch._foreach_norm(list(tensors)))))

    def all(self, tensors: Sequence[Tensor]) -> Tensor:
        norms = torch.stack(list(torch._foreach_norm(list(tensors))))
        norm: Tensor = torch.linalg.vector_norm(norms)
        return self._of(norm)

    def _of(self, norms: Tensor) -> Tensor:
        """The norms of the whole, of which these are those of the own rows."""
        squares = norms.square()
        dist.all_reduce(squares, group=self._group)
        return squares.sqrt_()
