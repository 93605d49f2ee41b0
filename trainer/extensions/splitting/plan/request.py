"""The request for a plan: model, update, devices, and limits of the search."""

from dataclasses import dataclass

from trainer.config.finetuning import PRETRAINING, FinetuningSection
from trainer.config.model import ModelConfig
from trainer.config.section import check
from trainer.config.settings import Config
from trainer.config.split import SplitSection
from trainer.extensions.splitting.plan.rates import DeviceRate, ShardingRate


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """Everything that a plan follows from. Equal requests give equal plans.

    attention: "fused", a kernel that keeps no scores; "scores", a matrix of them for each head, as processors
    have it for padded rows; "flat", the processors' own for sequences without padding.
    """

    model: ModelConfig
    sequence_length: int
    precision: str  # fp32, bf16 or fp16
    optimiser: str  # a name of the registry's presets
    examples: int  # rows of an update over all devices
    devices: int
    memory: int  # bytes of one device
    bandwidth: float  # bytes a second from one device to another
    rate: DeviceRate
    sharding: ShardingRate | None = None  # of sharded copies; None: both as bandwidth
    batch_size: int | None = None  # rows of a micro-batch; None: the search's choice
    head: str = PRETRAINING  # the task whose head is on the encoder, by its name
    masked: int | None = None  # masked slots of a row; None: 15 % of its positions
    attention: str = "fused"
    clips_micro_batches: bool = False  # gradients are clipped before they are added up (not in split models)
    memory_margin: float = 0.1  # fraction of the memory that stays free
    least_micro_batches: int = 1  # of a pipeline
    most_micro_batches: int = 32  # of a pipeline
    power_of_two: bool = True  # a pipeline's stages, copies and, unless batch_size is given, micro-batches
    stages: int | None = None  # None: the search's choice, as in the next line
    copies: int | None = None
    may_shard: bool = True
    may_shard_stages: bool = True  # those of pipelines too, where no other plan fits
    recompute: str = "auto"  # or always, or never
    strategy: str | None = None  # only plans of this strategy

    def __post_init__(self) -> None:
        length, longest = self.sequence_length, self.model.max_position_embeddings
        check(length <= longest, f"plan: sequence_length is {length}, max_position_embeddings is {longest}")

    @property
    def usable_memory(self) -> int:
        """Bytes of a device that a plan may use."""
        return int(self.memory * (1 - self.memory_margin))

    @property
    def masked_slots(self) -> int:
        """Masked slots of a row: at least one."""
        return self.masked or max(1, -(-self.sequence_length * 15 // 100))


def request_of(
    config: Config,
    model: ModelConfig,
    *,
    devices: int,
    sequence_length: int,
    memory: int,
    bandwidth: float,
    rate: DeviceRate,
    task: str,
    attention: str = "fused",
) -> PlanRequest:
    """The request with the configuration's update, limits and choices.

    memory: bytes of a device; bandwidth: bytes a second; task: PlanRequest.head. SettingsError where stages
    and copies cannot be made of the devices and layers.
    """
    split, update = config.section(SplitSection), config.update
    _check_shape(split.stages, split.copies, devices, model.num_hidden_layers)
    return PlanRequest(
        model=model,
        sequence_length=sequence_length,
        precision=update.precision,
        optimiser=update.optimiser,
        examples=update.global_batch_size or update.examples(update.replicas or devices),
        devices=devices,
        memory=memory,
        bandwidth=bandwidth,
        rate=rate,
        batch_size=update.batch_size,
        head=task,
        masked=None
        if config.section(FinetuningSection).is_finetuning
        else config.data.max_predictions_per_seq,
        attention=attention,
        clips_micro_batches=update.clips_micro_batches,
        memory_margin=split.memory_margin,
        least_micro_batches=split.min_micro_batches,
        most_micro_batches=split.max_micro_batches,
        power_of_two=split.power_of_two,
        stages=split.stages,
        copies=split.copies,
        recompute=split.recompute,
        strategy=None if config.run.strategy == "auto" else config.run.strategy,
    )


def _check_shape(stages: int | None, copies: int | None, devices: int, layers: int) -> None:
    """SettingsError where devices = stages x copies, or a layer for each stage, cannot be."""
    for name, number in (("stages", stages), ("copies", copies)):
        whole = number is None or devices % number == 0
        check(whole, f"{name} is {number}, expected a divisor of the number of devices ({devices})")
    both = (stages or 1) * (copies or 1)
    is_product = not (stages and copies) or both == devices
    check(is_product, f"stages x copies is {stages} x {copies}, expected {devices} (devices)")
    check(
        (stages or 1) <= layers,
        f"stages is {stages}, expected at most num_hidden_layers ({layers}): a stage has a layer at least",
    )
