"""Weights divided by rows among the processes of a mesh, by FSDP2 (Zhao et al. 2023).

Each layer is gathered for its own passes and freed after them; embeddings, pooler and heads together are
gathered for the whole of a forward and backward pass. A gradient's mean over the processes goes to those that
hold its rows.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.devices.device import HALVES, Device
from trainer.model.headed import HeadedBert
from trainer.model.layers import Norm
from trainer.splitting.subgroups import Subgroup
from trainer.update.worker import Division
from trainer.workers.collective import Collective

Mesh = Any
"""torch.distributed.DeviceMesh of one dimension; imported only where it is used."""


class Absent(nn.Module):
    """In place of a module whose weights another process has. A layer hands on what it is given."""

    def forward(self, rows: Tensor, normed: Tensor, sequences: object) -> tuple[Tensor, Tensor]:
        return rows, normed


def copies_mesh(device: Device, workers: Collective, division: Division) -> Mesh:
    """The processes that have this worker's stage, in a group of their own. All workers must make the call.

    The group of all workers stays the collective's alone, which can then end its threads: one that is left
    when the interpreter ends may crash it.
    """
    from torch.distributed.device_mesh import DeviceMesh

    copies = division.copies
    stages = [range(stage * copies, (stage + 1) * copies) for stage in range(division.stages)]
    own = Subgroup(workers, stages, device.bucket_mb).group
    assert own is not None
    return DeviceMesh.from_group(own, device.torch_device.type)


def shard_(model: HeadedBert, mesh: Mesh, precision: str, sum_type: torch.dtype | None = None) -> None:
    """Divide the weights of a model, or of a stage, on the meta device: each layer, then all the rest.

    In 16 bits a layer is gathered in them, all but its norms, so that autocast finds products' weights as
    it would make them, and keeps none for the backward pass. sum_type: the type in which gradients are
    added up; None: fp32.
    """
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    policy = partial(sharding_policy, sum_type=sum_type)
    half = HALVES.get(precision)
    for layer in model.bert.encoder.layer:
        if isinstance(layer, Absent):
            continue
        layer.attention.self.joins = False
        norms: list[nn.Module] = [module for module in layer.modules() if isinstance(module, Norm)]
        if half is not None:
            fully_shard(norms, mesh=mesh, mp_policy=policy(None), reshard_after_forward=False)
        fully_shard(layer, mesh=mesh, mp_policy=policy(half))
    is_last = not isinstance(model.bert.pooler, Absent)
    fully_shard(model if is_last else model.bert, mesh=mesh, mp_policy=policy(None))
    if not is_last:
        register_fsdp_forward_method(model.bert, "encode")  # the method that a stage before the last calls


def sharding_policy(dtype: torch.dtype | None, sum_type: torch.dtype | None) -> Any:
    """FSDP2's types in which weights are gathered and gradients added up.

    None: the weights' own, and fp32.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy

    sums = sum_type or torch.float32
    return MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=sums, cast_forward_inputs=False)


def gather_no_more(model: nn.Module) -> None:
    """Free gathered weights, which a pass without gradients leaves and which would get out of date."""
    for module in model.modules():
        if hasattr(module, "reshard"):
            module.reshard()  # type: ignore[operator]
