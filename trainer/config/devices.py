"""Sections of the devices: the keys that have an effect on one or two kinds only; None: not given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.config.section import Section


@dataclass(frozen=True, kw_only=True)
class CudaSection(Section):
    """Keys of NVIDIA's GPUs."""

    attention: str | None = None
    cuda_graphs: bool | None = None


@dataclass(frozen=True, kw_only=True)
class HpuSection(Section):
    """Keys of Gaudi."""

    use_fused_lamb: bool | None = None
    use_lazy_mode: bool | None = None  # older name for mode lazy
    mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class IpuSection(Section):
    """Keys of IPUs, with Graphcore's names."""

    available_memory_proportion: float | Sequence[float] | None = None  # of all IPUs, or of each
    batches_per_step: int | None = None  # updates in one call
    disable_graph_outlining: bool | None = None
    device_mapping: Sequence[int] | None = None  # the IPU of each stage
    embeddings_placement: str | None = None
    enable_recomputation: bool | None = None
    fp_exceptions: bool | None = None
    hidden_layers_per_stage: int | Sequence[int] | None = None
    loss_scaling_by_step: Mapping[str, float] | None = None  # scales by first update
    matmul_serialize_factor: int | None = None
    min_remote_tensor_size: int | None = None  # bytes
    no_outlining: bool | None = None
    partials_type: str | None = None
    pipeline_schedule: str | None = None
    pipeline_stages: Sequence[Sequence[str]] | None = None
    reduction_type: str | None = None
    replicated_tensor_sharding: bool | None = None
    stochastic_rounding: bool | None = None
    synthetic_data: bool | None = None
    variable_offloading: bool | None = None
    executable_cache_dir: str | None = None


@dataclass(frozen=True, kw_only=True)
class XlaSection(Section):
    """Keys of TPUs."""

    executable_cache_dir: str | None = None
