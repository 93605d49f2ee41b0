"""PopTorch's options.

Each setter call is recorded as it was written, and raises an error once the options are frozen.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from recording import call

from poptorch.enums import AutoStage, ConnectionType, OutputMode, ReductionType

_POPART = {"enableOutlining": bool, "autoRecomputation": int}


def option(method: Callable[..., None]) -> Callable[..., Any]:
    """Turn a method into a recorded setter that returns the options and fails once they are frozen."""

    @wraps(method)
    def set_option(self: Any, *values: Any, **more: Any) -> Any:
        if self.root.frozen:
            raise AttributeError("Can't modify frozen Options")
        call(f"{self.prefix}.{method.__name__}", *values, **more)
        method(self, *values, **more)
        return self

    return set_option


class _Part:
    def __init__(self, root: "Options", prefix: str) -> None:
        self.root, self.prefix = root, f"Options.{prefix}"


class _Training(_Part):
    gradient_accumulation = 1
    reduction = ReductionType.Mean

    @option
    def gradientAccumulation(self, gradient_accumulation: int) -> None:
        assert gradient_accumulation >= 1
        self.gradient_accumulation = gradient_accumulation

    @option
    def accumulationAndReplicationReductionType(self, reduction_type: ReductionType) -> None:
        if reduction_type not in (ReductionType.Mean, ReductionType.Sum):
            raise ValueError("must be set to poptorch.ReductionType.Mean or poptorch.ReductionType.Sum")
        self.reduction = reduction_type


class _Precision(_Part):
    @option
    def enableFloatingPointExceptions(self, enabled: bool) -> None:
        assert isinstance(enabled, bool)

    @option
    def enableStochasticRounding(self, enabled: bool) -> None:
        assert isinstance(enabled, bool)

    @option
    def setPartialsType(self, dtype: torch.dtype) -> None:
        if dtype not in (torch.float, torch.half):
            raise ValueError("parameter to setPartialsType should be either torch.float or torch.half")


class TensorLocationSettings:
    """Settings of where tensors are stored. ``repr`` is the expression that made them."""

    def __init__(self) -> None:
        self.__qualname__ = "TensorLocationSettings()"

    def _add(self, name: str, value: Any) -> "TensorLocationSettings":
        self.__qualname__ += f".{name}({value})"
        return self

    def minElementsForOffChip(self, min_elements: int) -> "TensorLocationSettings":
        assert isinstance(min_elements, int)
        return self._add("minElementsForOffChip", min_elements)

    def useOnChipStorage(self, use: bool = True) -> "TensorLocationSettings":
        assert isinstance(use, bool)
        return self._add("useOnChipStorage", use)

    def useReplicatedTensorSharding(self, use: bool = True) -> "TensorLocationSettings":
        assert isinstance(use, bool)
        return self._add("useReplicatedTensorSharding", use)


class _TensorLocations(_Part):
    @option
    def setOptimizerLocation(self, location: TensorLocationSettings) -> None:
        assert isinstance(location, TensorLocationSettings)


class _Popart(_Part):
    @option
    def set(self, key: str, value: Any) -> None:
        if type(value) is not _POPART.get(key):
            raise RuntimeError(f"Unknown key or wrong type: {key}, {value!r}")


class PipelinedExecution:
    fills = True

    def __init__(self, auto_stage: AutoStage) -> None:
        assert isinstance(auto_stage, AutoStage)
        self.__qualname__ = f"{type(self).__name__}({auto_stage!s})"


class ShardedExecution(PipelinedExecution):
    fills = False


class Options:
    """replicas and processes: what popdist's options, made from these, set by themselves."""

    def __init__(self) -> None:
        self.root, self.prefix, self.frozen = self, "Options", False
        self.replicas, self.processes, self.iterations, self.rounds = 1, 1, 1, False
        self.output, self.strategy, self.connection = OutputMode.Default, None, ConnectionType.Always
        self.cache: str | None = None
        self.seed: int | None = None
        self.synthetic = False
        self.Training, self.Precision = _Training(self, "Training"), _Precision(self, "Precision")
        self.TensorLocations = _TensorLocations(self, "TensorLocations")
        self._Popart = _Popart(self, "_Popart")
        if type(self) is Options:
            call("Options")

    @option
    def autoRoundNumIPUs(self, auto_round_num_ipus: bool = True) -> None:
        self.rounds = auto_round_num_ipus

    @option
    def deviceIterations(self, device_iterations: int) -> None:
        self.iterations = device_iterations

    @option
    def replicationFactor(self, replication_factor: int) -> None:
        self.replicas = replication_factor

    @option
    def outputMode(self, output_mode: OutputMode) -> None:
        assert output_mode is OutputMode.All, "the stand-in knows no other"
        self.output = output_mode

    @option
    def setExecutionStrategy(self, strategy: PipelinedExecution) -> None:
        assert isinstance(strategy, PipelinedExecution)
        self.strategy = strategy

    @option
    def setAvailableMemoryProportion(self, available_memory_proportion: dict[str, float]) -> None:
        for key, share in available_memory_proportion.items():
            assert key.startswith("IPU"), f"Invalid key: {key}"
            assert 0 <= share <= 1, f"{key}: {share}"

    @option
    def enableExecutableCaching(self, path: str) -> None:
        self.cache = path

    @option
    def randomSeed(self, random_seed: int) -> None:
        assert isinstance(random_seed, int)
        self.seed = random_seed

    @option
    def enableSyntheticData(self, enabled: bool) -> None:
        self.synthetic = enabled

    @option
    def useOfflineIpuTarget(self, ipu_version: int = 2) -> None:
        self.connection = ConnectionType.Never
