"""The end of an update alone: gradient clipping and LAMB over all weights of the model, fused or compiled."""

import torch
from torch import nn

from benchmarks.gpu.clock import time_call, time_repeated_calls
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.sizes import Sizes
from benchmarks.gpu.updates import make_phase_data
from trainer.config.settings import Config
from trainer.devices.device import Device
from trainer.run.runtime import find_model_config, make_model, open_runtime
from trainer.update.make_step import make_optimiser_step
from trainer.update.skipping import SkippingOptimiserStep, clip_and_step
from trainer.update.step import OptimiserStep


def measure_optimiser(figures: Figures, sizes: Sizes, phase: str, fused: bool) -> None:
    """Measure the seconds of clipping and LAMB: of the first step, which may compile, and of the later steps.

    fused: True for PyTorch's fused kernels, False for plain operations that torch.compile compiles.
    """
    config = sizes.config(phase, compile=False)
    runtime = open_runtime(config)
    model = make_model(runtime, find_model_config(config, make_phase_data(config, sizes.phases[phase].fill)))
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    step = make_clipping_and_step(config, runtime.device, model, fused)
    made = 0

    def take_step() -> None:
        """Make a step, and count it."""
        nonlocal made
        made += 1
        step.take(gradients, 1e-4, made)

    figures.add("first step", time_call(take_step, sizes.device), "s", weights=len(gradients))
    figures.add(
        "step",
        time_repeated_calls(take_step, sizes.device, 2 * sizes.seconds) * 1e3,
        "ms",
        weights=len(gradients),
    )


def make_clipping_and_step(config: Config, device: Device, model: nn.Module, fused: bool) -> OptimiserStep:
    """Return the part of the trainer that clips gradients and changes the model's weights.

    fused: True for PyTorch's fused kernels, False for plain operations that torch.compile compiles.
    """
    device.fused_step = fused
    step = make_optimiser_step(config, device, model.named_parameters())
    if not fused:
        assert isinstance(step, SkippingOptimiserStep)
        step.function = torch.compile(clip_and_step, fullgraph=True, dynamic=False)
    return step
