"""The request for a plan, and the meshes, which are the possible ways to divide the devices and an update."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bertdata.config.settings import require
from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig, check_length
from trainer.config.sections.finetuning import PRETRAINING
from trainer.config.sections.split import SplitSection
from trainer.config.sections.update import UpdateSection
from trainer.config.settings import Config
from trainer.splitting.plan.rates import DeviceRate, ShardingRate


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """Everything that determines a plan. Equal requests give equal plans.

    config: the strategy, the limits of the split, and the update settings except the number
        of examples are used.
    examples: number of rows per update, over all devices.
    memory: bytes per device.
    bandwidth: bytes per second from one device to another.
    sharding: speeds at which sharded stages exchange data. None means that all are ``bandwidth``.
    head: name of the task whose head is on the encoder.
    attention: how attention is computed. "fused" is a kernel that does not store the attention scores.
        "scores" stores a matrix of scores per head, as processors do for padded rows. "flat" is the
        processors' method for sequences without padding.
    may_shard: whether weights can be sharded.
    may_shard_stages: whether stages of pipelines may be sharded too, if no other plan fits.
    Raises SettingsError if the number of stages or copies does not suit the devices and layers.
    """

    config: Config  # its strategy, split limits, and update settings (except the number of examples) count
    model: ModelConfig
    sequence_length: int
    examples: int  # rows per update, over all devices
    devices: int
    memory: int  # bytes per device
    bandwidth: float  # bytes per second from one device to another
    rate: DeviceRate
    sharding: ShardingRate | None = None  # speeds of sharded stages; None: both are ``bandwidth``
    head: str = PRETRAINING  # name of the task whose head is on the encoder
    attention: str = "fused"
    may_shard: bool = True
    may_shard_stages: bool = True  # shard stages of pipelines too, if no other plan fits

    def __post_init__(self) -> None:
        stages, copies, devices = self.split.stages, self.split.copies, self.devices
        for name, number in (("stages", stages), ("copies", copies)):
            divides = number is None or devices % number == 0
            require(divides, f"{name} is {number}, expected a divisor of the number of devices ({devices})")
        is_product = not (stages and copies) or stages * copies == devices
        require(is_product, f"stages x copies is {stages} x {copies}, expected {devices} (devices)")
        layers, why = self.model.num_hidden_layers, "a stage has a layer at least"
        has_layers = (stages or 1) <= layers
        require(has_layers, f"stages is {stages}, expected at most num_hidden_layers ({layers}): {why}")
        check_length(self.sequence_length, self.model.max_position_embeddings, "plan")

    @property
    def split(self) -> SplitSection:
        """The configured limits and settings of the split."""
        return self.config.split

    @property
    def update(self) -> UpdateSection:
        """The configured settings of an update."""
        return self.config.update

    @property
    def strategy(self) -> str:
        """The strategy that the plan must have, or "auto" if any strategy is allowed."""
        return self.config.run.strategy

    @property
    def usable_memory(self) -> int:
        """Number of bytes of a device that a plan may use. The rest is the configured margin."""
        return int(self.memory * (1 - self.split.memory_margin))

    @property
    def masked_slots(self) -> int:
        """Number of masked positions per row.

        It is the configured number. If none is configured, it is 15 % of the positions, and at least one.
        """
        configured = None if self.config.is_finetuning else self.config.data.max_predictions_per_seq
        return configured or max(1, -(-self.sequence_length * 15 // 100))

    def changed(self, **keys: Any) -> "PlanRequest":
        """Return a copy of the request with other values for some keys of the configuration."""
        return replace(self, config=self.config.changed(**keys))


def count_configured_examples(config: Config, devices: int) -> int:
    """Return the configured number of rows per update.

    devices: number of devices, each of which counts as if it had the whole model.
    """
    update = config.update
    return update.global_batch_size or update.examples(update.replicas or devices)


class Mesh(NamedTuple):
    """A way to use the devices: a number of stages and of copies of each stage, and the
    division of an update.

    micro_batches: number of micro-batches per copy and update.
    rows: number of rows of a micro-batch.
    shards_ends: whether the first and the last stage are sharded. Either both are or neither is, because both
        may have the tied word embeddings, and then add up their gradients.
    shards_middle: whether the stages in between may be sharded.
    """

    stages: int
    copies: int
    micro_batches: int
    rows: int
    shards_ends: bool = False
    shards_middle: bool = False

    def count_in_flight(self, left: int) -> int:
        """Return how many micro-batches can be between their forward and their backward pass in a stage at
        the same time.

        If there are fewer micro-batches than stages, all forward passes come before the first backward pass,
        so these are all micro-batches.
        left: number of the stage, counted from the end. The last stage has 1.
        """
        return min(left, self.micro_batches) if self.micro_batches >= self.stages else self.micro_batches


def list_meshes(request: PlanRequest) -> list[Mesh]:
    """Return all meshes for the request's devices. Those with few stages and few micro-batches come first.

    Every device is used, and every copy has the same number of micro-batches. The configured limits
    on the number of micro-batches, and the restriction to powers of two, apply only to pipelines
    (two or more stages).
    Raises SettingsError if there is no mesh.
    """
    meshes = [
        mesh for stages in _list_divisors(request.devices) for mesh in _list_meshes_with(request, stages)
    ]
    if meshes:
        return meshes
    most = min(request.devices, request.model.num_hidden_layers)
    wanted = f"{request.examples} examples of an update" + (
        f" in micro-batches of {size} rows" if (size := request.update.batch_size) else ""
    )
    raise SettingsError(
        f"plan: {request.devices} devices cannot share {wanted} in 1 to {most} stages with "
        f"{request.split.min_micro_batches} to {request.split.max_micro_batches} micro-batches"
        + (", powers of two" if request.split.power_of_two else "")
        + "; change the batch size, the number of devices or these limits"
    )


def _list_meshes_with(request: PlanRequest, stages: int) -> Iterator[Mesh]:
    """Yield the meshes that have this number of stages."""
    split, given = request.split, request.update.batch_size
    copies, is_pipeline = request.devices // stages, stages > 1
    has_powers = split.power_of_two and is_pipeline
    # Leave out meshes that the settings exclude by their stages, copies or strategy, and pipelines whose
    # numbers are not powers of two.
    asked = (split.stages or stages, split.copies or copies)
    is_kind = request.strategy == "auto" or (request.strategy == "pipelined") == is_pipeline
    if asked != (stages, copies) or not is_kind or stages > request.model.num_hidden_layers:
        return
    are_powers = stages.bit_count() == copies.bit_count() == 1
    if request.examples % copies or (has_powers and not are_powers):
        return
    rows = request.examples // copies
    must_shard = request.strategy == "sharded"
    may_shard = request.may_shard and copies > 1 and request.strategy != "replicated"
    may_shard = may_shard and (request.may_shard_stages or not is_pipeline)
    # Divide each copy's rows into micro-batches. For example, 12 rows can be 1 micro-batch of 12 rows, 2 of
    # 6, 3 of 4, 4 of 3, 6 of 2, or 12 of 1.
    for micro_batches in _list_divisors(rows):
        size = rows // micro_batches
        is_many = split.min_micro_batches <= micro_batches <= split.max_micro_batches
        is_free = not has_powers or given is not None or micro_batches.bit_count() == 1
        if given in (None, size) and (not is_pipeline or (is_many and is_free)):
            for shards_ends in sorted({must_shard, must_shard or may_shard}):
                yield Mesh(stages, copies, micro_batches, size, shards_ends, may_shard)


def _list_divisors(number: int) -> list[int]:
    """Return the divisors of a number in ascending order."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
