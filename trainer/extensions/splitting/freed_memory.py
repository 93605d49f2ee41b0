"""Freed memory of a processor, given back to the system at once, for models that fill their share of it."""

import ctypes
import platform

from trainer.devices.device import HOST, Device

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's mallopt."""

_LARGE = 1 << 20
"""Bytes: larger tensors have memory of their own; otherwise glibc keeps up to half as much again."""


def return_memory(device: Device) -> None:
    """Make this process return freed memory to the system. Memory of accelerators is unaffected."""
    if device.torch_device.type == HOST.type and platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            library.mallopt(parameter, _LARGE)
