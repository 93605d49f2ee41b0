"""The request for a plan: model, update, devices, and limits of the search."""

from dataclasses import dataclass

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.extensions.splitting.plan.rates import DeviceRate, ShardingRate

STRATEGIES = ("replicated", "sharded", "pipelined")

ATTENTION = ("fused", "scores", "flat")
"""Kinds of attention: a fused kernel, which keeps no scores; a matrix of scores for each head, as processors
have it for padded rows; the processors' own for sequences without padding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """Everything that a plan follows from. Equal requests give equal plans."""

    model: ModelConfig
    sequence_length: int
    precision: str  # fp32, bf16 or fp16
    optimiser: str  # a name of trainer.config.update.PRESETS
    examples: int  # rows of an update over all devices
    devices: int
    memory: int  # bytes of one device
    bandwidth: float  # bytes a second from one device to another
    rate: DeviceRate
    sharding: ShardingRate | None = None  # of sharded copies; None: both as bandwidth
    batch_size: int | None = None  # rows of a micro-batch; None: the search's choice
    head: str = "pretraining"  # or the name of another task: one linear layer
    masked: int | None = None  # masked slots of a row; None: 15 % of its positions
    attention: str = "fused"  # a name of ATTENTION
    clips_micro_batches: bool = False  # gradients are clipped before they are added up (not in split models)
    memory_margin: float = 0.1  # fraction of the memory that stays free
    least_micro_batches: int = 1  # of a pipeline
    most_micro_batches: int = 32  # of a pipeline
    power_of_two: bool = (
        True  # so are a pipeline's stages, copies and, unless batch_size is given, micro-batches
    )
    stages: int | None = None  # None: the search's choice, as in the next line
    copies: int | None = None
    may_shard: bool = True
    may_shard_stages: bool = True  # those of pipelines too, where no other plan fits
    may_recompute: bool = True
    must_recompute: bool = False
    strategy: str | None = None  # only plans of this strategy

    def __post_init__(self) -> None:
        whole = ("sequence_length", "examples", "devices", "memory", "batch_size", "stages", "copies")
        for name in (*whole, "least_micro_batches", "most_micro_batches"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"plan: {name} is {value}, expected at least 1")
        if not self.bandwidth > 0:
            raise SettingsError(f"plan: bandwidth is {self.bandwidth:g} bytes/s, expected more than 0")
        if not 0 <= self.memory_margin < 1:
            raise SettingsError(f"plan: memory_margin is {self.memory_margin:g}, expected 0 to below 1")
        if self.sequence_length > (longest := self.model.max_position_embeddings):
            raise SettingsError(
                f"plan: sequence_length is {self.sequence_length}, max_position_embeddings is {longest}"
            )
        if self.attention not in ATTENTION:
            raise SettingsError(
                f"plan: attention is {self.attention!r}, expected one of {', '.join(ATTENTION)}"
            )
        if self.must_recompute and not self.may_recompute:
            raise SettingsError("plan: must_recompute without may_recompute")
        if self.strategy not in (None, *STRATEGIES):
            raise SettingsError(
                f"plan: strategy is {self.strategy!r}, expected one of {', '.join(STRATEGIES)}"
            )

    @property
    def usable_memory(self) -> int:
        """Bytes of a device that a plan may use."""
        return int(self.memory * (1 - self.memory_margin))

    @property
    def masked_slots(self) -> int:
        """Masked slots of a row: at least one."""
        if self.masked is not None:
            return self.masked
        return max(1, -(-self.sequence_length * 15 // 100))
