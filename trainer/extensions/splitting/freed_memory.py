"""Freed memory of a processor, given back to the system at once, for models that fill their share of it."""

from bertdata.io.freed_memory import keep_less_freed_memory
from trainer.devices.device import HOST, Device

_LARGE = 1 << 20
"""Bytes of tensors that have memory of their own; otherwise glibc keeps up to half as much again."""


def return_memory(device: Device) -> None:
    """Make this process return freed memory to the system. Memory of accelerators is unaffected."""
    if device.torch_device.type == HOST.type:
        keep_less_freed_memory(_LARGE)
