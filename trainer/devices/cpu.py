"""The host's own processor."""

import ctypes
import platform

import torch

from trainer.devices.availability import Availability
from trainer.devices.cpu_attention import cpu_attention
from trainer.devices.device import Device
from trainer.model.attention import FlatAttention

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""

_LARGE = 1 << 20
"""Bytes: larger tensors have memory of their own; otherwise glibc keeps up to half as much again."""


class Cpu(Device):
    """A processor."""

    name = "cpu"
    process_group = "gloo"
    bucket_mb = 25
    fused_step = True

    def seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 50 times as long

    def return_memory(self) -> None:
        if platform.libc_ver()[0] == "glibc":
            library = ctypes.CDLL(None)
            for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
                library.mallopt(parameter, _LARGE)

    @property
    def attention(self) -> FlatAttention:
        return cpu_attention

    def describe(self) -> str:
        compiled = ", compiled" if self.compiles else ""
        threads = torch.get_num_threads()
        return f"cpu: {platform.machine()}, {threads} thread{'s' * (threads != 1)}{compiled}"


def examine() -> Availability:
    """PyTorch's kernels on this processor, which is always there."""
    _, _, shown = torch.__config__.show().partition("CPU capability usage: ")
    kernels = f"torch {torch.__version__} with {shown.partition(chr(10))[0]} kernels"
    products = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"  # type: ignore[no-untyped-call]
    fast = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)()
    bf16 = f"bf16 {'' if fast else 'not '}in hardware"
    return Availability("cpu", True, f"{kernels}, {products}, fused attention; {bf16}")
