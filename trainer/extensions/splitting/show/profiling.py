"""Times of a model's layers, measured on the configured device."""

from dataclasses import replace

from bertdata.io.terminal import say_error
from trainer.collectives.collective import find_collective
from trainer.config.settings import Config
from trainer.devices.device import HOST
from trainer.devices.registry import find_device
from trainer.extensions.splitting.plan.costs import Costs
from trainer.extensions.splitting.plan.profile import profiled_costs
from trainer.extensions.splitting.plan.request import PlanRequest


def profile(config: Config, request: PlanRequest) -> tuple[PlanRequest, Costs]:
    """The request with the device's kind of attention, and the costs measured on it, in some seconds."""
    device = find_device(config)
    if device.torch_device.type == HOST.type:
        request = replace(request, attention="scores" if config.data.rows else "flat")
    say_error(f"trainer: timing the model's layers on device {device.name}")
    return request, profiled_costs(request, device, find_collective("single", device))
