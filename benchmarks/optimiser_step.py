"""CPU time of the end of an update (clipping and LAMB) on one core, written in three ways.

They are PyTorch's fused kernels, plain operations compiled by torch.compile, and operations on lists of
tensors, which an earlier version of this trainer used. Each has its own model. They run alternately, and the
least CPU time of each counts. Compiling takes minutes, so the second way is measured only with --compiled.

With --large the model has 110 million weights instead of 11 million.
"""

import math
import sys
import time
from collections.abc import Callable

import torch

from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.clipping import clip_
from trainer.devices.cpu import Cpu
from trainer.model.headed import BertForPreTraining
from trainer.plugins import find
from trainer.update.make_step import make_optimiser_step
from trainer.update.optimiser import group_parameters
from trainer.update.skipping import SkippingOptimiserStep, clip_and_step

ROUNDS = 10
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
LARGE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
OPTIMISER = "lamb-nvidia"


class UnfusedCpu(Cpu):
    """Processor as a device whose optimiser step consists of plain operations, which torch.compile can
    compile.
    """

    fused_step = False


def make_model(shape: dict[str, int]) -> BertForPreTraining:
    """Return a model with random gradients."""
    model = BertForPreTraining(ModelConfig(vocab_size=30522, **shape))
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    return model


def make_our_step(kind: type[Cpu], shape: dict[str, int], precision: str) -> Callable[[], None]:
    """Return a function that makes the trainer's clipping and optimiser step.

    kind: class of the device, which decides how the step is written.
    shape: sizes of the model.
    """
    config = Config.of(optimiser=OPTIMISER, precision=precision)
    model = make_model(shape)
    step = make_optimiser_step(config, kind(config), model.named_parameters())
    if kind is UnfusedCpu:
        assert isinstance(step, SkippingOptimiserStep)
        step.function = torch.compile(clip_and_step, fullgraph=True, dynamic=False)
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    return lambda: step.take(gradients, 1e-3, 1)


def make_former_step(shape: dict[str, int]) -> Callable[[], None]:
    """Return a function that makes LAMB's step in the way of an earlier version of this trainer.

    It works on lists of tensors that have about four million elements together.
    """
    model, preset = make_model(shape), find("optimiser", OPTIMISER)
    groups = group_parameters(preset, model.named_parameters())
    moments = {weight: (torch.zeros_like(weight), torch.zeros_like(weight)) for weight in model.parameters()}
    number = 0

    @torch.no_grad()
    def step() -> None:
        """Clip the gradients and change all weights."""
        nonlocal number
        number += 1
        clip_([weight.grad for weight in model.parameters() if weight.grad is not None], 1.0)
        for group in groups:
            chunk, size = list[torch.Tensor](), 0
            for weight in group["params"]:
                chunk.append(weight)
                size += weight.numel()
                if size >= 2**22 or weight is group["params"][-1]:
                    change(chunk, group["weight_decay"], group["trust"])
                    chunk, size = [], 0

    def change(w: list[torch.Tensor], decay: float, trust: bool) -> None:
        """Change the weights of one list.

        decay: weight decay.
        trust: True to scale the change by LAMB's trust ratio.
        """
        g = [weight.grad for weight in w if weight.grad is not None]
        m, v = ([moments[weight][place] for weight in w] for place in range(2))  # type: ignore[index]
        torch._foreach_lerp_(m, g, 0.1)
        torch._foreach_mul_(v, 0.999)
        torch._foreach_addcmul_(v, g, g, 0.001)
        root = math.sqrt(1 - 0.999**number)
        scale = root / (1 - 0.9**number)
        u = torch._foreach_sqrt(v)
        torch._foreach_add_(u, 1e-6 * root)
        torch._foreach_reciprocal_(u)
        torch._foreach_mul_(u, m)
        if decay:
            torch._foreach_add_(u, w, alpha=decay / scale)
        if not trust:
            torch._foreach_add_(w, u, alpha=-1e-3 * scale)
            return
        ratios = torch.stack(list(torch._foreach_norm(w))) / torch.stack(list(torch._foreach_norm(u)))
        torch._foreach_addcmul_(w, u, (ratios / scale * (-1e-3 * scale)).unbind())

    return step


def main() -> None:
    """Print the times of all ways."""
    torch.set_num_threads(1)
    shape = LARGE if "--large" in sys.argv else SMALL
    forms = {"before": make_former_step(shape), "fused, fp32": make_our_step(Cpu, shape, "fp32")}
    forms["fused, bf16 (bad updates skipped)"] = make_our_step(Cpu, shape, "bf16")
    if "--compiled" in sys.argv:
        forms["plain operations, compiled, bf16"] = make_our_step(UnfusedCpu, shape, "bf16")
    least = dict.fromkeys(forms, math.inf)
    for number in range(ROUNDS + 1):
        for name, step in forms.items():
            start = time.process_time()
            step()
            if number:  # the first step does not count, because it compiles and allocates memory
                least[name] = min(least[name], time.process_time() - start)
    print(f"clipping and LAMB, {'110' if shape is LARGE else '11'} million weights, one thread:")
    for name, cpu in least.items():
        print(f"  {name:<36} {cpu * 1e3:7.1f} ms, {least['before'] / cpu:4.2f} times as fast as before")


if __name__ == "__main__":
    main()
