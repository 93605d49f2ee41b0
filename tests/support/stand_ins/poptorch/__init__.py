"""A stand-in for PopTorch 3 (Poplar SDK 3.4), on the processor: Graphcore's names, signatures and rules.

After the PopTorch user guide and reference and its public source. What the trainer has no use for is left
out, so that using it is an error that names it. The arithmetic is real: micro-batches are differentiated
one after another, reduced as the options say, and the optimiser's formula is applied to weights that live
"on the device", apart from the module's own until they are copied back. Two rules of the hardware are
kept too: one set of IPUs, so that only one executor is attached at a time, and a pipeline that must be
filled. BERTDATA_STAND_IN_IPUS says how many IPUs there are (16).
"""

import os
from typing import Any

import torch
from recording import call

from poptorch import optim
from poptorch.blocks import BeginBlock, traced
from poptorch.enums import AutoStage, ConnectionType, MatMulSerializationMode, OutputMode, ReductionType
from poptorch.executor import PoplarExecutor
from poptorch.options import Options, PipelinedExecution, ShardedExecution, TensorLocationSettings

__version__ = "3.4.0"
__all__ = [
    "AutoStage",
    "BeginBlock",
    "ConnectionType",
    "MatMulSerializationMode",
    "Options",
    "OutputMode",
    "PipelinedExecution",
    "PoplarExecutor",
    "ReductionType",
    "ShardedExecution",
    "TensorLocationSettings",
    "identity_loss",
    "inferenceModel",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "optim",
    "recomputationCheckpoint",
    "serializedMatMul",
    "trainingModel",
]


def trainingModel(
    model: torch.nn.Module, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
) -> PoplarExecutor:
    call("trainingModel", model, optimizer=type(optimizer).__name__)
    return PoplarExecutor(model, options or Options(), optimizer=optimizer, training=True)


def inferenceModel(model: torch.nn.Module, options: Options | None = None) -> PoplarExecutor:
    call("inferenceModel", model, training=model.training)
    return PoplarExecutor(model, options or Options(), optimizer=None, training=False)


def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    return int(os.environ.get("BERTDATA_STAND_IN_IPUS", "16")) >= num_ipus


def ipuHardwareVersion() -> int:
    return 2 if ipuHardwareIsAvailable() else 0


def identity_loss(x: torch.Tensor, reduction: str) -> torch.Tensor:
    assert reduction in ("sum", "mean", "none"), "Unsupported reduction type!"
    traced("identity_loss", x, reduction=reduction)
    return x if reduction == "none" else getattr(x, reduction)()


def recomputationCheckpoint(*tensors: Any) -> Any:
    traced("recomputationCheckpoint", *tensors)
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        return type(tensors[0])(tensors[0])
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)
    return tensors[0] if len(tensors) == 1 else tensors


def serializedMatMul(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    mode: MatMulSerializationMode,
    factor: int = 0,
    keep_precision: bool = False,
) -> torch.Tensor:
    assert isinstance(mode, MatMulSerializationMode)
    assert mode is not MatMulSerializationMode.OutputChannels or rhs.shape[1] % factor == 0
    traced("serializedMatMul", lhs, rhs, mode, factor)
    return torch.cat([lhs @ part for part in rhs.chunk(factor, dim=1)], dim=1)
