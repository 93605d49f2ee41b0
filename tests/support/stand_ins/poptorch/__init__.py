"""A CPU stand-in for PopTorch 3 (Poplar SDK 3.4), with Graphcore's names, signatures and rules.

It follows the PopTorch user guide, reference and public source. Whatever the trainer does not need is
missing, so that its use is an error with its name. The arithmetic is real: micro-batches are differentiated
one after another, gradients are reduced as the options say, and the optimiser changes weights that live "on
the device", separate from the module's weights until they are copied back. Two rules of the hardware are
enforced too. There is a single set of IPUs, so only one executor can be attached at a time. And a pipeline
must have enough micro-batches to be filled. BERTDATA_STAND_IN_IPUS is the number of IPUs (default 16).
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
