"""The request for a plan, and its meshes: ways to divide devices and an update that the request allows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig, check_length
from trainer.config.sections.finetuning import PRETRAINING
from trainer.config.sections.section import check
from trainer.config.sections.split import SplitSection
from trainer.config.sections.update import UpdateSection
from trainer.config.settings import Config
from trainer.splitting.plan.rates import DeviceRate, ShardingRate


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """Everything that a plan follows from. Equal requests give equal plans.

    attention: "fused", a kernel that keeps no scores; "scores", a matrix of them for each head, as processors
    have it for padded rows; "flat", the processors' own for sequences without padding. SettingsError where
    stages and copies cannot be made of the devices and layers.
    """

    config: Config  # its strategy, its update but for the examples, and the limits of its SplitSection
    model: ModelConfig
    sequence_length: int
    examples: int  # rows of an update over all devices
    devices: int
    memory: int  # bytes of one device
    bandwidth: float  # bytes a second from one device to another
    rate: DeviceRate
    sharding: ShardingRate | None = None  # of sharded copies; None: both as bandwidth
    head: str = PRETRAINING  # the task whose head is on the encoder, by its name
    attention: str = "fused"
    may_shard: bool = True
    may_shard_stages: bool = True  # those of pipelines too, where no other plan fits

    def __post_init__(self) -> None:
        stages, copies, devices = self.split.stages, self.split.copies, self.devices
        for name, number in (("stages", stages), ("copies", copies)):
            divides = number is None or devices % number == 0
            check(divides, f"{name} is {number}, expected a divisor of the number of devices ({devices})")
        is_product = not (stages and copies) or stages * copies == devices
        check(is_product, f"stages x copies is {stages} x {copies}, expected {devices} (devices)")
        layers, why = self.model.num_hidden_layers, "a stage has a layer at least"
        has_layers = (stages or 1) <= layers
        check(has_layers, f"stages is {stages}, expected at most num_hidden_layers ({layers}): {why}")
        check_length(self.sequence_length, self.model.max_position_embeddings, "plan")

    @property
    def split(self) -> SplitSection:
        return self.config.split

    @property
    def update(self) -> UpdateSection:
        return self.config.update

    @property
    def strategy(self) -> str:
        """The strategy that alone a plan may have, or auto."""
        return self.config.run.strategy

    @property
    def usable_memory(self) -> int:
        """Bytes of a device that a plan may use."""
        return int(self.memory * (1 - self.split.memory_margin))

    @property
    def masked_slots(self) -> int:
        """Masked slots of a row, where none are configured 15 % of its positions: at least one."""
        configured = None if self.config.is_finetuning else self.config.data.max_predictions_per_seq
        return configured or max(1, -(-self.sequence_length * 15 // 100))

    def changed(self, **keys: Any) -> "PlanRequest":
        """The request with other keys of the configuration."""
        return replace(self, config=self.config.changed(**keys))


def configured_examples(config: Config, devices: int) -> int:
    """Rows of an update over so many devices that have the whole model."""
    update = config.update
    return update.global_batch_size or update.examples(update.replicas or devices)


class Mesh(NamedTuple):
    """Devices as stages x copies, and the micro-batches of a copy in an update.

    shards_ends: the first and the last stage are sharded, else neither is. Both have the word embeddings,
    where the heads use them, and add up their gradients. shards_middle: those between may be sharded.
    """

    stages: int
    copies: int
    micro_batches: int
    rows: int  # of a micro-batch
    shards_ends: bool = False
    shards_middle: bool = False

    def in_flight(self, left: int) -> int:
        """Micro-batches under way at once in a stage that is so many stages from the end (the last: 1).

        Fewer micro-batches than stages all go forward before the first goes backward.
        """
        return min(left, self.micro_batches) if self.micro_batches >= self.stages else self.micro_batches


def meshes_of(request: PlanRequest) -> list[Mesh]:
    """All meshes of the request's devices, those with few stages and few micro-batches first.

    Every device is used and every copy has the same micro-batches. The limits of micro-batches and powers of
    two are for pipelines. SettingsError where there is no such mesh.
    """
    meshes = [mesh for stages in _divisors(request.devices) for mesh in _with_stages(request, stages)]
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


def _with_stages(request: PlanRequest, stages: int) -> Iterator[Mesh]:
    split, given = request.split, request.update.batch_size
    copies, is_pipeline = request.devices // stages, stages > 1
    has_powers = split.power_of_two and is_pipeline
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
    for micro_batches in _divisors(rows):
        size = rows // micro_batches
        is_many = split.min_micro_batches <= micro_batches <= split.max_micro_batches
        is_free = not has_powers or given is not None or micro_batches.bit_count() == 1
        if given in (None, size) and (not is_pipeline or (is_many and is_free)):
            for shards_ends in sorted({must_shard, must_shard or may_shard}):
                yield Mesh(stages, copies, micro_batches, size, shards_ends, may_shard)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
