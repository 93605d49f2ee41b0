"""Placement of the model on the workers: a whole copy on each worker if it fits, otherwise divided into
stages by a plan.
"""

from dataclasses import replace

from bertdata.errors import SettingsError
from trainer.config.model import ModelConfig
from trainer.devices.device import Device
from trainer.splitting.memory import surely_fits_whole
from trainer.splitting.placing import place_by_plan
from trainer.update.worker import Runtime, hold_whole_model


def place_model(runtime: Runtime, shape: ModelConfig, sequence_length: int) -> Runtime:
    """Return the runtime with this worker's share of the model.

    If a plan divides the model, the returned configuration also has the plan's number of micro-batches.
    shape: settings of the model.
    sequence_length: largest number of tokens of an example.
    Raises SettingsError if the model cannot be divided as configured.
    """
    config, device, workers = runtime.config, runtime.device, runtime.collective
    asked = config.run.strategy
    check_strategy(asked, device)
    # With "auto", divide the model only if a whole copy may not fit into a device's memory.
    needs_plan = config.split.plan is not None or asked in ("sharded", "pipelined")
    if not needs_plan and asked == "auto" and workers.size > 1:
        needs_plan = not surely_fits_whole(
            config, device, workers, runtime.empty_model(shape).count_weights()
        )
    if not needs_plan:
        return replace(runtime, model_share=hold_whole_model(workers))
    return place_by_plan(runtime, shape, sequence_length)


def check_strategy(asked: str, device: Device) -> None:
    """Raise SettingsError if the device cannot train with the configured strategy."""
    own = device.strategy
    if own != "replicated" and asked not in ("auto", own):
        raise SettingsError(
            f"strategy is {asked}, but device {device.name!r} has a strategy of its own ({own}); "
            "leave --strategy out"
        )
