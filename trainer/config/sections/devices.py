"""Configuration sections of keys that only some devices use: CUDA, Gaudi, IPU, TPU. The value None means that
a key is not set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.config.declared import derive_schemas, repeat_setting, setting
from bertdata.config.value_check import check_values
from trainer.config.sections.schedule import BY_UPDATE
from trainer.config.sections.section import Section

_STRING = {"type": "string"}


@dataclass(frozen=True, kw_only=True)
class DeviceSection(Section):
    """Base class for the keys of one type of device. Keys that are not set are not checked."""

    def __post_init__(self) -> None:
        given = {name: value for name, value in self.values().items() if value is not None}
        check_values(given, derive_schemas(type(self)))


def declare_device_key(help: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """Declare a key that only some types of devices use. Its default is None, which means that it is not set.

    help: text for the help.
    choices: allowed values. Empty allows every value of the key's type.
    more: further arguments of ``setting``.
    """
    return setting(None, help, choices, optional=True, **more)


@dataclass(frozen=True, kw_only=True)
class CudaSection(DeviceSection):
    """Keys for NVIDIA GPUs."""

    attention: str | None = declare_device_key(
        "attention kernel: auto, flash (without padding), efficient, cudnn or math (default: auto)",
        ("auto", "flash", "efficient", "cudnn", "math"),
        keywords={"type": "string"},
    )
    cuda_graphs: bool | None = declare_device_key("compile the model and run it with CUDA graphs")


@dataclass(frozen=True, kw_only=True)
class HpuSection(DeviceSection):
    """Keys for Intel's Gaudi cards (HPUs)."""

    use_fused_lamb: bool | None = declare_device_key("use the vendor's LAMB; no: use this trainer's")
    use_lazy_mode: bool | None = declare_device_key("older name of mode lazy")
    mode: str | None = declare_device_key(
        "how operations run on the card: lazy, graph or eager (default: graph)",
        ("lazy", "graph", "eager"),
        keywords=_STRING,
    )


@dataclass(frozen=True, kw_only=True)
class IpuSection(DeviceSection):
    """Keys for IPUs, named as in Graphcore's programs."""

    available_memory_proportion: float | Sequence[float] | None = declare_device_key(
        "share of an IPU's memory for matrix products: one number, or a list with one per IPU",
        least=0,
        most=1,
    )
    batches_per_step: int | None = declare_device_key(
        "number of updates per call of the device (default: 1)", least=1
    )
    disable_graph_outlining: bool | None = declare_device_key(
        "repeat equal code instead of making it a function"
    )
    device_mapping: Sequence[int] | None = declare_device_key(
        "number of the IPU of each pipeline stage, as a list", least=0, keywords={"minItems": 1}
    )
    embeddings_placement: str | None = declare_device_key(
        "IPUs for the embeddings: same_as_hidden_layers, same_ipu or two_ipus"
    )
    enable_recomputation: bool | None = declare_device_key(
        "recompute activations in the backward pass instead of keeping them"
    )
    fp_exceptions: bool | None = declare_device_key("stop at a floating-point exception")
    hidden_layers_per_stage: int | Sequence[int] | None = declare_device_key(
        "layers per pipeline stage: one number, or a list", least=1
    )
    loss_scaling_by_step: Mapping[str, float] | None = declare_device_key(
        "fixed loss scales, as a JSON object from the first update of each scale to the scale",
        above=0,
        keywords=BY_UPDATE,
    )
    matmul_serialize_factor: int | None = declare_device_key(
        "compute the product with the word embeddings in this many parts", least=1
    )
    min_remote_tensor_size: int | None = declare_device_key(
        "keep optimiser state of at least this many bytes off the chip", least=0
    )
    no_outlining: bool | None = declare_device_key("same as disable_graph_outlining")
    partials_type: str | None = declare_device_key(
        "type in which matrix products are summed: float or half", ("half", "float"), keywords=_STRING
    )
    pipeline_schedule: str | None = declare_device_key(
        "order of forward and backward passes in the pipeline: Grouped or Sequential (default: Grouped)",
        ("Grouped", "Sequential"),
        keywords=_STRING,
    )
    pipeline_stages: Sequence[Sequence[str]] | None = declare_device_key(
        "parts in each pipeline stage, as a list of lists of emb, hid, pool, enc_out, heads"
    )
    reduction_type: str | None = declare_device_key(
        "how a worker combines its micro-batches, on every device: mean or sum (default: mean); workers are "
        "always averaged",
        ("mean", "sum"),
        keywords=_STRING,
        everywhere=True,
    )
    replicated_tensor_sharding: bool | None = declare_device_key(
        "divide the optimiser's state among the replicas"
    )
    stochastic_rounding: bool | None = declare_device_key(
        "round stochastically in 16 bits (default: with fp16)"
    )
    synthetic_data: bool | None = declare_device_key("generate data on the IPU; all losses are then 0")
    variable_offloading: bool | None = declare_device_key("keep the optimiser's state off the chip")
    executable_cache_dir: str | None = declare_device_key("directory for compiled programs")


@dataclass(frozen=True, kw_only=True)
class XlaSection(DeviceSection):
    """Keys for TPUs."""

    executable_cache_dir: str | None = repeat_setting(IpuSection, "executable_cache_dir")
