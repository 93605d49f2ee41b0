"""The request for a plan that a configuration makes."""

from trainer.config.model import ModelConfig
from trainer.config.section import check
from trainer.config.settings import Config
from trainer.extensions.splitting.plan.rates import DeviceRate
from trainer.extensions.splitting.plan.request import PlanRequest


def request_of(
    config: Config,
    model: ModelConfig,
    *,
    devices: int,
    sequence_length: int,
    memory: int,
    bandwidth: float,
    rate: DeviceRate,
    attention: str = "fused",
) -> PlanRequest:
    """The request with the configuration's update, limits and choices.

    memory: bytes of a device; bandwidth: bytes a second; attention: a name of request.ATTENTION.
    SettingsError where stages and copies cannot be made of the devices and layers.
    """
    split, update = config.split, config.update
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
        head=config.finetuning.task,
        masked=None if config.finetuning.is_finetuning else config.data.max_predictions_per_seq,
        attention=attention,
        clips_micro_batches=update.micro_batch_clip_norm(1) is not None,
        memory_margin=split.memory_margin,
        least_micro_batches=split.min_micro_batches,
        most_micro_batches=split.max_micro_batches,
        power_of_two=split.power_of_two,
        stages=split.stages,
        copies=split.copies,
        may_recompute=split.recompute != "never",
        must_recompute=split.recompute == "always",
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
