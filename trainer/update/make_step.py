"""A function that chooses the optimiser step by the device and the precision."""

from collections.abc import Iterable

from torch import nn

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.devices.stepping_device import SteppingDevice
from trainer.update.device_step import DeviceOptimiserStep
from trainer.update.optimiser import find_configured_preset, group_parameters
from trainer.update.optimisers import build_optimiser
from trainer.update.skipping import SkippingOptimiserStep
from trainer.update.step import OptimiserStep


def make_optimiser_step(
    config: Config, device: Device, named_parameters: Iterable[tuple[str, nn.Parameter]]
) -> OptimiserStep:
    """Return the object that makes the configured optimiser's steps on these weights."""
    preset = find_configured_preset(config)
    groups = group_parameters(preset, named_parameters)
    if isinstance(device, SteppingDevice):
        return DeviceOptimiserStep(config, device, preset, groups)
    optimiser = build_optimiser(preset, groups)
    optimiser.fuses, optimiser.chunk = device.fused_step, device.step_chunk
    if config.update.precision == "fp32":
        return OptimiserStep(config, device, optimiser)
    return SkippingOptimiserStep(config, device, optimiser)
