"""PopTorch's options and optimiser for a configuration. Settings that PopTorch cannot fulfil are refused
here.
"""

from types import ModuleType
from typing import Any

import torch

from bertdata.errors import SettingsError
from trainer.config.schedules.form import Preset
from trainer.config.sections.devices import IpuSection
from trainer.config.settings import Config
from trainer.devices.ipu.device import Ipu
from trainer.devices.ipu.stages import IpuPipeline

# value of popart.RecomputationType.Pipeline, because PopTorch takes its enumerations as numbers
_PIPELINED_RECOMPUTATION = 3


def check_training(device: Ipu, accumulation: int) -> None:
    """Raise SettingsError, with the remedy, for the first setting that PopTorch cannot train with.

    PopTorch's options are made only at the first update, when the run has already changed its output
    directory. So this check is called earlier.
    accumulation: number of micro-batches per update.
    """
    config, pipeline = device.config, device.pipeline
    keys, point = config.ipu, config.update.clipping_point
    refused = [
        (
            config.update.precision == "fp16" and not config.scaling.loss_scaling,
            "loss_scaling 0 (adaptive): PopTorch's is experimental, and no checkpoint would hold its state; "
            "give a fixed one, as --loss-scaling 1024",
        ),
        (
            point.startswith("per_micro_batch"),
            f"clipping {point}: PopTorch clips once an update at most; give --clipping none",
        ),
        (
            config.workers.force_weight_sync,
            "force_weight_sync: the weights are on the IPUs; leave it out",
        ),
        (
            config.workers.allreduce_post_accumulation_fp16,
            "allreduce_post_accumulation_fp16: IPUs reduce as they accumulate; leave it out",
        ),
        (
            bool(keys.synthetic_data) and not config.data.generated_data,
            "synthetic_data: the IPUs generate it in shapes that the host gives; add --generated-data",
        ),
        (
            config.run.compile_only and keys.executable_cache_dir is None,
            "compile_only: there is no cache to keep the program in; give --executable-cache-dir",
        ),
    ]
    for applies, message in refused:
        if applies:
            raise SettingsError(f"device 'ipu': {message}")
    _find_memory_shares(keys, pipeline)
    if _name_pipeline_schedule(keys) == "PipelinedExecution" and accumulation < pipeline.least_accumulation:
        raise SettingsError(
            f"device 'ipu': accumulation (pipeline_depth) is {accumulation}, expected "
            f"{pipeline.least_accumulation} or more to fill a pipeline of IPUs {pipeline.ipus}"
        )


def make_training_options(device: Ipu, *, accumulation: int, seed: int) -> Any:
    """Return PopTorch's options for training.

    accumulation: number of micro-batches per update.
    """
    config, poptorch, options = device.config, device.poptorch, device.fresh_options()
    keys = config.ipu
    options.deviceIterations(keys.batches_per_step or 1)
    options.Training.gradientAccumulation(accumulation)
    reduction = "Sum" if keys.reduction_type == "sum" else "Mean"
    options.Training.accumulationAndReplicationReductionType(getattr(poptorch.ReductionType, reduction))
    set_shared_options(device, options, _name_pipeline_schedule(keys))
    # Graphcore's programs round stochastically whenever they train in 16 bits.
    given = keys.stochastic_rounding
    options.Precision.enableStochasticRounding(config.update.precision == "fp16" if given is None else given)
    if keys.fp_exceptions is not None:
        options.Precision.enableFloatingPointExceptions(keys.fp_exceptions)
    location = (keys.variable_offloading, keys.replicated_tensor_sharding, keys.min_remote_tensor_size)
    if any(value is not None for value in location):
        options.TensorLocations.setOptimizerLocation(_make_optimiser_location(poptorch, keys))
    if keys.enable_recomputation is not None:
        mode = _PIPELINED_RECOMPUTATION if keys.enable_recomputation else 0
        options._Popart.set("autoRecomputation", mode)
    if keys.synthetic_data:
        options.enableSyntheticData(True)
    options.randomSeed(seed)
    if config.run.compile_only:
        options.useOfflineIpuTarget(ipu_version=2)
    return options


def set_shared_options(device: Ipu, options: Any, strategy: str) -> Any:
    """Set the options that training and evaluation have in common, and return the options.

    strategy: PopTorch's name for the pipeline's schedule, the order in which IPUs compute micro-batches.
    """
    keys, poptorch = device.config.ipu, device.poptorch
    options.autoRoundNumIPUs(True)
    options.outputMode(poptorch.OutputMode.All)
    options.setExecutionStrategy(getattr(poptorch, strategy)(poptorch.AutoStage.AutoIncrement))
    if shares := _find_memory_shares(keys, device.pipeline):
        options.setAvailableMemoryProportion(shares)
    if keys.partials_type is not None:
        options.Precision.setPartialsType(torch.half if keys.partials_type == "half" else torch.float)
    if keys.disable_graph_outlining or keys.no_outlining:
        options._Popart.set("enableOutlining", False)
    if keys.executable_cache_dir is not None:
        options.enableExecutableCaching(keys.executable_cache_dir)
    return options


def _name_pipeline_schedule(keys: IpuSection) -> str:
    """Return PopTorch's name for the pipeline's schedule, the order in which IPUs compute micro-batches."""
    return "ShardedExecution" if keys.pipeline_schedule == "Sequential" else "PipelinedExecution"


def _find_memory_shares(keys: IpuSection, pipeline: IpuPipeline) -> dict[str, float]:
    """Return the share of each IPU's memory for temporary values, by the IPU's name. {} if none is
    configured.
    """
    given = keys.available_memory_proportion
    if given is None:
        return {}
    count = max(pipeline.ipus) + 1
    shares = [given] * count if isinstance(given, int | float) else given
    if len(shares) != count:
        raise SettingsError(
            f"device 'ipu': available_memory_proportion is {shares}, expected a number, or one for "
            f"each of {count} IPUs"
        )
    return {f"IPU{ipu}": share for ipu, share in enumerate(shares)}


def _make_optimiser_location(poptorch: ModuleType, keys: IpuSection) -> Any:
    """Return PopTorch's settings for keeping the optimiser's state in the IPU's memory or outside it."""
    settings = poptorch.TensorLocationSettings()
    if keys.variable_offloading is not None:
        settings.useOnChipStorage(not keys.variable_offloading)
    if keys.replicated_tensor_sharding is not None:
        settings.useReplicatedTensorSharding(keys.replicated_tensor_sharding)
    if keys.min_remote_tensor_size is not None:
        # PopTorch counts fp32 elements, the setting counts bytes
        settings.minElementsForOffChip(-(-keys.min_remote_tensor_size // 4))
    return settings


def find_loss_scales(config: Config) -> dict[int, float]:
    """Return the configured loss scales, as {first update with this scale: scale}. Updates are counted from
    0.
    """
    if config.update.precision != "fp16":
        return {0: 1.0}
    by_step = config.ipu.loss_scaling_by_step or {}
    changes = {int(since): float(scale) for since, scale in by_step.items()}
    return {0: float(config.scaling.loss_scaling), **changes}


def find_loss_scale(config: Config, step: int) -> float:
    """Return the loss scale of update ``step``, counted from 0."""
    scales = find_loss_scales(config)
    return scales[max(since for since in scales if since <= step)]


def make_optimiser(poptorch: ModuleType, config: Config, preset: Preset, groups: list[dict[str, Any]]) -> Any:
    """Return PopTorch's LAMB, AdamW or SGD, whichever computes what the preset says.

    Raises SettingsError for any other optimiser.
    groups: parameter groups with the keys params, weight_decay and trust.
    """
    if preset.kind == "stableadamw":
        raise SettingsError("device 'ipu': PopTorch has no StableAdamW; give another optimiser")
    if preset.epsilon_in != "corrected":
        raise SettingsError(f"device 'ipu': epsilon_in is {preset.epsilon_in}, PopTorch's is corrected")
    half = torch.float16 if config.update.precision == "fp16" else torch.float32
    has_trust = any(group["trust"] for group in groups)
    made = [{name: group[name] for name in ("params", "weight_decay")} for group in groups]
    common = {"lr": preset.lr, "loss_scaling": find_loss_scale(config, 0), "accum_type": half}
    scaled = any(scale != 1 for scale in find_loss_scales(config).values())
    if config.update.clipping_point == "per_update":
        if has_trust:
            raise SettingsError("device 'ipu': PopTorch's LAMB has no clipping; give --clipping none")
        if scaled:
            why = "PopTorch clips gradients before it divides them by the loss scale"
            raise SettingsError(f"device 'ipu': clipping: {why}; give --clipping none or --loss-scaling 1")
        common["max_grad_norm"] = config.update.max_grad_norm
    if preset.kind == "sgd":
        if preset.momentum and scaled:
            why = "PopTorch keeps velocities times the loss scale, and a checkpoint keeps them without it"
            raise SettingsError(f"device 'ipu': momentum: {why}; give --loss-scaling 1")
        return poptorch.optim.SGD(made, momentum=preset.momentum, **common)
    adaptive = {
        "betas": preset.betas,
        "eps": preset.eps,
        "bias_correction": preset.debias,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32,
    }
    if not has_trust:
        return poptorch.optim.AdamW(made, **common, **adaptive)
    for group, asked in zip(made, groups, strict=True):
        if not asked["trust"]:
            # With a largest weight norm of 0, PopTorch uses the trust ratio 1, which has no effect.
            group["max_weight_norm"] = 0.0
    return poptorch.optim.LAMB(made, **common, **adaptive)
