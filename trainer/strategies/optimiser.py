"""Loss scale and optimiser settings of a configuration."""

from typing import Any

from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.devices.loss_scale import LossScale


def make_scale(config: Config, device: Device) -> LossScale:
    """The loss scale of the configured precision and bounds."""
    update = config.update  # of which JSON may have whole numbers
    fixed = float(update.loss_scaling)
    bounds = (float(update.init_loss_scale), float(update.min_loss_scale), float(update.max_loss_scale))
    initial, floor, ceiling = (fixed, fixed, fixed) if fixed else bounds
    return device.scaler(update.precision, initial=initial, floor=floor, ceiling=ceiling)


def optimiser_settings(config: Config) -> dict[str, Any]:
    """The settings of the optimiser that the configuration gives; absent ones are the preset's."""
    beta1, beta2 = config.update.beta1, config.update.beta2
    betas = (0.9 if beta1 is None else beta1, 0.999 if beta2 is None else beta2)
    settings = {
        "betas": None if beta1 is beta2 is None else betas,
        "eps": config.update.optimiser_epsilon,
        "weight_decay": config.update.weight_decay,
        "decay_skips": None if config.update.decay_skips is None else tuple(config.update.decay_skips),
        "debias": config.update.use_debiasing,
        "momentum": config.update.momentum,
    }
    return {name: value for name, value in settings.items() if value is not None}
