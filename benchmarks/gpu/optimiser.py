"""The end of an update alone: clipping and LAMB over all weights of the model, fused or compiled."""

import torch

from benchmarks.gpu.clock import seconds_each, seconds_of
from benchmarks.gpu.figures import Figures
from benchmarks.gpu.peer import fused_step
from benchmarks.gpu.sizes import Sizes
from benchmarks.gpu.updates import phase_data
from trainer.run.runtime import begin, find_model_config, make_model


def optimiser(figures: Figures, sizes: Sizes, phase: str, fused: bool) -> None:
    """Seconds of the first step, which compiles, and of the following ones."""
    config = sizes.config(phase, compile=not fused)
    runtime = begin(config)
    runtime.device.compiles = not fused
    model = make_model(runtime, find_model_config(config, phase_data(config, sizes.phases[phase].fill)))
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    step = fused_step(config, runtime.device, model, fused)
    made = 0

    def take() -> None:
        nonlocal made
        made += 1
        step.take(gradients, 1e-4, made)

    figures.add("first step", seconds_of(take, sizes.device), "s", weights=len(gradients))
    figures.add(
        "step", seconds_each(take, sizes.device, 2 * sizes.seconds) * 1e3, "ms", weights=len(gradients)
    )
