"""PopTorch's enumerations."""

from enum import Enum


class _Named(Enum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class ReductionType(_Named):
    Sum = 0
    Mean = 1
    NoReduction = 2


class OutputMode(_Named):
    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


class ConnectionType(_Named):
    Always = 0
    OnDemand = 1
    Never = 2


class AutoStage(_Named):
    SameAsIpu = 0
    AutoIncrement = 1


class MatMulSerializationMode(_Named):
    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"
