"""PopTorch's options and optimisers for a configuration; settings that PopTorch lacks are refused here."""

from types import ModuleType
from typing import Any

import torch

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.devices.ipu.stages import Pipeline
from trainer.optim import Preset

_STRATEGIES = {"Grouped": "PipelinedExecution", "Sequential": "ShardedExecution"}
_TYPES = {"half": torch.half, "float": torch.float}
_REDUCTIONS = {"mean": "Mean", "sum": "Sum"}
_PIPELINED_RECOMPUTATION = 3  # popart.RecomputationType.Pipeline; PopTorch knows its enumerations by number


def check_training(config: Config, pipeline: Pipeline, accumulation: int) -> None:
    """SettingsError, with the remedy, for the first setting that PopTorch cannot train with.

    Called early: the options themselves are made at the first update, when output_dir is already in use.
    """
    options = config.device_options
    refused = [
        (
            config.precision == "fp16" and not config.loss_scaling,
            "loss_scaling 0 (adaptive): PopTorch's is experimental, and no checkpoint would hold its state; "
            "give a fixed one, as --loss-scaling 1024",
        ),
        (
            config.clipping_point == "per_micro_batch",
            "clipping per_micro_batch: PopTorch clips once an update at most; give --clipping none",
        ),
        (config.force_weight_sync, "force_weight_sync: the weights are on the IPUs; leave it out"),
        (
            config.allreduce_post_accumulation_fp16,
            "allreduce_post_accumulation_fp16: IPUs reduce as they accumulate; leave it out",
        ),
        (
            options.get("synthetic_data", False) and not config.generated_data,
            "synthetic_data: the IPUs generate it in shapes that the host gives; add --generated-data",
        ),
        (
            config.compile_only and "executable_cache_dir" not in options,
            "compile_only: there is no cache to keep the program in; give --executable-cache-dir",
        ),
    ]
    for applies, message in refused:
        if applies:
            raise SettingsError(f"device 'ipu': {message}")
    choose(options, "reduction_type", _REDUCTIONS, "mean")
    choose(options, "partials_type", _TYPES, "float")
    _memory_shares(options, pipeline)
    strategy = choose(options, "pipeline_schedule", _STRATEGIES, "Grouped")
    if strategy == "PipelinedExecution" and accumulation < pipeline.least_accumulation:
        wanted = f"expected {pipeline.least_accumulation} or more to fill a pipeline of IPUs {pipeline.ipus}"
        raise SettingsError(f"device 'ipu': accumulation (pipeline_depth) is {accumulation}, {wanted}")


def choose(options: dict[str, Any], key: str, choices: dict[str, Any], usual: str) -> Any:
    """PopTorch's value for the key's value; SettingsError lists the choices."""
    value = options.get(key, usual)
    if value not in choices:
        raise SettingsError(f"device 'ipu': {key} is {value!r}, expected one of {', '.join(choices)}")
    return choices[value]


def training_options(
    poptorch: ModuleType, options: Any, config: Config, pipeline: Pipeline, *, accumulation: int, seed: int
) -> Any:
    """The given fresh options with everything set for training."""
    given = config.device_options
    strategy = choose(given, "pipeline_schedule", _STRATEGIES, "Grouped")
    options.deviceIterations(given.get("batches_per_step", 1))
    options.Training.gradientAccumulation(accumulation)
    reduction = choose(given, "reduction_type", _REDUCTIONS, "mean")
    options.Training.accumulationAndReplicationReductionType(getattr(poptorch.ReductionType, reduction))
    _shared_options(poptorch, options, config, pipeline, strategy)
    # Graphcore's programs round stochastically wherever they train in 16 bits.
    options.Precision.enableStochasticRounding(given.get("stochastic_rounding", config.precision == "fp16"))
    if "fp_exceptions" in given:
        options.Precision.enableFloatingPointExceptions(given["fp_exceptions"])
    if keys := {"variable_offloading", "replicated_tensor_sharding", "min_remote_tensor_size"} & given.keys():
        options.TensorLocations.setOptimizerLocation(
            _optimiser_location(poptorch, {key: given[key] for key in keys})
        )
    if "enable_recomputation" in given:
        mode = _PIPELINED_RECOMPUTATION if given["enable_recomputation"] else 0
        options._Popart.set("autoRecomputation", mode)
    if given.get("synthetic_data"):
        options.enableSyntheticData(True)
    options.randomSeed(seed)
    if config.compile_only:
        options.useOfflineIpuTarget(ipu_version=2)
    return options


def inference_options(poptorch: ModuleType, options: Any, config: Config, pipeline: Pipeline) -> Any:
    """The given fresh options with everything set for evaluation: the stages run one after another."""
    _shared_options(poptorch, options, config, pipeline, "ShardedExecution")
    return options


def _shared_options(
    poptorch: ModuleType, options: Any, config: Config, pipeline: Pipeline, strategy: str
) -> None:
    given = config.device_options
    options.autoRoundNumIPUs(True)
    options.outputMode(poptorch.OutputMode.All)
    options.setExecutionStrategy(getattr(poptorch, strategy)(poptorch.AutoStage.AutoIncrement))
    if shares := _memory_shares(given, pipeline):
        options.setAvailableMemoryProportion(shares)
    if "partials_type" in given:
        options.Precision.setPartialsType(choose(given, "partials_type", _TYPES, "float"))
    if given.get("disable_graph_outlining") or given.get("no_outlining"):
        options._Popart.set("enableOutlining", False)
    if "executable_cache_dir" in given:
        options.enableExecutableCaching(given["executable_cache_dir"])


def _memory_shares(given: dict[str, Any], pipeline: Pipeline) -> dict[str, float]:
    """The memory proportion of each IPU, by its name; empty where none is given."""
    if "available_memory_proportion" not in given:
        return {}
    count = max(pipeline.ipus) + 1
    shares = given["available_memory_proportion"]
    shares = shares if isinstance(shares, list) else [shares] * count
    if len(shares) != count:
        wanted = f"expected a number, or one for each of {count} IPUs"
        raise SettingsError(f"device 'ipu': available_memory_proportion is {shares}, {wanted}")
    return {f"IPU{ipu}": share for ipu, share in enumerate(shares)}


def _optimiser_location(poptorch: ModuleType, given: dict[str, Any]) -> Any:
    """The location settings of the optimiser's state."""
    settings = poptorch.TensorLocationSettings()
    if "variable_offloading" in given:
        settings.useOnChipStorage(not given["variable_offloading"])
    if "replicated_tensor_sharding" in given:
        settings.useReplicatedTensorSharding(given["replicated_tensor_sharding"])
    if "min_remote_tensor_size" in given:
        settings.minElementsForOffChip(-(-given["min_remote_tensor_size"] // 4))  # bytes of fp32
    return settings


def loss_scales(config: Config) -> dict[int, float]:
    """The loss scales by the first update (counted from 0) that each applies to."""
    if config.precision != "fp16":
        return {0: 1.0}
    by_step = config.device_options.get("loss_scaling_by_step", {})
    return {0: float(config.loss_scaling)} | {int(since): float(scale) for since, scale in by_step.items()}


def loss_scale(config: Config, step: int) -> float:
    """The loss scale of an update, counted from 0."""
    scales = loss_scales(config)
    return scales[max(since for since in scales if since <= step)]


def make_optimiser(poptorch: ModuleType, config: Config, preset: Preset, groups: list[dict[str, Any]]) -> Any:
    """PopTorch's LAMB, AdamW or SGD with the preset's arithmetic; SettingsError where there is none."""
    half = torch.float16 if config.precision == "fp16" else torch.float32
    has_trust = any(group["trust"] for group in groups)
    made = [{name: group[name] for name in ("params", "weight_decay")} for group in groups]
    common = {"lr": preset.lr, "loss_scaling": loss_scale(config, 0), "accum_type": half}
    scaled = any(scale != 1 for scale in loss_scales(config).values())
    if config.clipping_point == "per_update":
        if has_trust:
            raise SettingsError("device 'ipu': PopTorch's LAMB has no clipping; give --clipping none")
        if scaled:
            why = "PopTorch clips gradients before it divides them by the loss scale"
            raise SettingsError(f"device 'ipu': clipping: {why}; give --clipping none or --loss-scaling 1")
        common["max_grad_norm"] = config.max_grad_norm
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
            group["max_weight_norm"] = 0.0  # makes the trust ratio 1
    return poptorch.optim.LAMB(made, **common, **adaptive)
