"""The host's own processor."""

import platform
from typing import TYPE_CHECKING

import torch

from trainer.devices.cpu_attention import cpu_attention
from trainer.devices.device import Device
from trainer.model.layers import FlatAttention

if TYPE_CHECKING:
    from trainer.devices.choice import Availability


class Cpu(Device):
    """A processor."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25
    fused_step = True

    def seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 50 times as long

    @property
    def attention(self) -> FlatAttention:
        return cpu_attention

    def describe(self) -> str:
        compiled = ", compiled" if self.compiles else ""
        threads = torch.get_num_threads()
        return f"cpu: {platform.machine()}, {threads} thread{'s' * (threads != 1)}{compiled}"


def examine() -> "Availability":
    """PyTorch's kernels on this processor, which is always there."""
    from trainer.devices.choice import Availability

    _, _, shown = torch.__config__.show().partition("CPU capability usage: ")
    kernels = f"torch {torch.__version__} with {shown.partition(chr(10))[0]} kernels"
    products = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"  # type: ignore[no-untyped-call]
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    bf16 = f"bf16 {'' if fast else 'not '}in hardware"
    return Availability("cpu", True, f"{kernels}, {products}, fused attention; {bf16}")
