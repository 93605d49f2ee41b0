"""The request for a plan: model, update, devices, and limits of the search."""

from dataclasses import dataclass, replace
from typing import Any

from trainer.config.finetuning import FinetuningSection
from trainer.config.model import ModelConfig
from trainer.config.section import PRETRAINING, check
from trainer.config.settings import Config
from trainer.config.split import SplitSection
from trainer.config.update import UpdateSection
from trainer.extensions.splitting.plan.rates import DeviceRate, ShardingRate


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
        _check_shape(self.split, self.devices, self.model.num_hidden_layers)
        length, longest = self.sequence_length, self.model.max_position_embeddings
        check(length <= longest, f"plan: sequence_length is {length}, max_position_embeddings is {longest}")

    @property
    def split(self) -> SplitSection:
        return self.config.section(SplitSection)

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
        is_finetuning = self.config.section(FinetuningSection).is_finetuning
        configured = None if is_finetuning else self.config.data.max_predictions_per_seq
        return configured or max(1, -(-self.sequence_length * 15 // 100))

    def changed(self, **keys: Any) -> "PlanRequest":
        """The request with other keys of the configuration."""
        return replace(self, config=self.config.changed(**keys))


def configured_examples(config: Config, devices: int) -> int:
    """Rows of an update over so many devices that have the whole model."""
    update = config.update
    return update.global_batch_size or update.examples(update.replicas or devices)


def _check_shape(split: SplitSection, devices: int, layers: int) -> None:
    """SettingsError where devices = stages x copies, or a layer for each stage, cannot be."""
    stages, copies = split.stages, split.copies
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
