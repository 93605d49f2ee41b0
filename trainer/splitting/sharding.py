"""Sharding: weights divided by rows among the processes of a mesh, with FSDP2 (Zhao et al. 2023).

A mesh is PyTorch's object for a group of processes. FSDP2 gathers the weights of a layer for each pass of
this layer and frees them afterwards. Embeddings, pooler and heads are gathered together, for the whole
forward and backward pass. Gradients are averaged over the processes, and each process gets the mean for the
rows that it holds.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trainer.devices.device import HALVES, Device
from trainer.model.headed import HeadedBert
from trainer.model.layers import Norm
from trainer.splitting.subgroups import Subgroup
from trainer.update.worker import ModelShare
from trainer.workers.collective import Collective

Mesh = Any
"""A one-dimensional torch.distributed.DeviceMesh. The class is imported only where it is used."""


class AbsentModule(nn.Module):
    """Stand-in for a module whose weights are on another process.

    In the place of a layer, it returns its input unchanged.
    """

    def forward(self, rows: Tensor, normed: Tensor, sequences: object) -> tuple[Tensor, Tensor]:
        return rows, normed


def make_copies_mesh(device: Device, workers: Collective, division: ModelShare) -> Mesh:
    """Return a mesh of the processes that have this worker's stage. All workers must call this together.

    The mesh gets a separate process group, even if it contains all workers. Only ``Collective`` may use the
    group of all workers, because it must be able to end that group's threads. A thread that still runs when
    the interpreter exits may crash the interpreter.
    """
    from torch.distributed.device_mesh import DeviceMesh

    copies = division.copies
    stages = [range(stage * copies, (stage + 1) * copies) for stage in range(division.stages)]
    own = Subgroup(workers, stages, device.bucket_mb).group
    assert own is not None
    return DeviceMesh.from_group(own, device.torch_device.type)


def shard_model(model: HeadedBert, mesh: Mesh, precision: str, sum_type: torch.dtype | None = None) -> None:
    """Shard the weights of a model or stage on the meta device, in place.

    Each layer is one unit that FSDP2 gathers at once. The remaining weights are another unit. With 16-bit
    precision a layer is gathered in 16 bits, except its norms. Autocast then finds weights that are already
    converted, and keeps no copies for the backward pass.
    mesh: the processes that share the weights.
    precision: "fp32", "bf16", "fp16" or "fp8". Weights for FP8 are gathered in bf16.
    sum_type: type in which gradients are added up. None means fp32.
    """
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    policy = partial(make_sharding_policy, sum_type=sum_type)
    half = HALVES.get(precision)
    for layer in model.bert.encoder.layer:
        if isinstance(layer, AbsentModule):
            continue
        layer.attention.self.joins = False
        norms: list[nn.Module] = [module for module in layer.modules() if isinstance(module, Norm)]
        if half is not None:
            fully_shard(norms, mesh=mesh, mp_policy=policy(None), reshard_after_forward=False)
        fully_shard(layer, mesh=mesh, mp_policy=policy(half))
    is_last = not isinstance(model.bert.pooler, AbsentModule)
    fully_shard(model if is_last else model.bert, mesh=mesh, mp_policy=policy(None))
    if not is_last:
        # Stages before the last call this method, and not ``forward``.
        register_fsdp_forward_method(model.bert, "encode")


def make_sharding_policy(dtype: torch.dtype | None, sum_type: torch.dtype | None) -> Any:
    """Return FSDP2's policy about number types.

    dtype: type of the gathered weights. None keeps the type of the weights.
    sum_type: type in which gradients are added up. None means fp32.
    """
    from torch.distributed.fsdp import MixedPrecisionPolicy

    sums = sum_type or torch.float32
    return MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=sums, cast_forward_inputs=False)


def free_gathered_weights(model: nn.Module) -> None:
    """Free the weights that FSDP2 has gathered from other processes.

    They stay gathered after a pass without gradients. The next update changes only the sharded rows, so the
    gathered weights would be outdated.
    """
    for module in model.modules():
        if hasattr(module, "reshard"):
            module.reshard()  # type: ignore[operator]
