"""Speeds of devices, in operations and bytes per second, and the data sheets of known devices."""

from dataclasses import dataclass
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.config.settings import Config

REACHED_SHARE = 0.5
"""Share of the figures in a data sheet that training is assumed to reach."""

DEFAULT_DEVICE = "a100"
"""Name of the device whose figures are used if nothing is known about the device."""

_FLOPS_PER_BYTE = 150  # Assumed operations per byte read or written, typical of the devices in SHEETS.


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceRate:
    """Speeds of one device in training, with one precision. Both speeds are above 0."""

    flops: float  # floating-point operations per second, in matrix products
    bytes: float  # bytes per second, read or written in its own memory
    name: str = "given"

    def seconds(self, flops: float, moved: float) -> float:
        """Return the seconds that some work takes.

        flops: number of floating-point operations.
        moved: number of bytes read and written.
        """
        return flops / self.flops + moved / self.bytes


class ShardingRate(NamedTuple):
    """Speeds at which the copies of a sharded stage exchange data, in bytes per second for each copy.

    All copies send and receive at the same time.
    forward: speed at which a copy receives the gathered weights in a forward pass.
    backward: speed at which a copy receives weights and sends gradients in a backward pass.
    """

    forward: float
    backward: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSheet:
    """Figures of a device's data sheet.

    fp32: speed of matrix products of fp32 numbers. Devices that have the TF32 format use it.
    """

    memory: int  # bytes
    fp32: float  # FLOP/s without sparsity
    half: float  # FLOP/s in bf16 and fp16, without sparsity
    bytes: float  # memory bandwidth in bytes per second
    bandwidth: float  # bytes per second to other devices of the machine, in one direction


SHEETS = {
    "v100": DataSheet(memory=32 * 10**9, fp32=15.7e12, half=125e12, bytes=900e9, bandwidth=150e9),
    "a100": DataSheet(memory=80 * 10**9, fp32=156e12, half=312e12, bytes=2039e9, bandwidth=300e9),
    "h100": DataSheet(memory=80 * 10**9, fp32=495e12, half=989e12, bytes=3350e9, bandwidth=450e9),
    "h200": DataSheet(memory=141 * 10**9, fp32=495e12, half=989e12, bytes=4800e9, bandwidth=450e9),
    "gaudi2": DataSheet(memory=96 * 10**9, fp32=216e12, half=432e12, bytes=2450e9, bandwidth=262.5e9),
}
"""Data sheets of devices, by name.

The NVIDIA devices are SXM modules. The fp32 speed of Intel's Gaudi 2 is assumed to be half its bf16 speed.
"""


def find_sheet_rate(name: str, precision: str) -> DeviceRate:
    """Return the speeds that a device in SHEETS is assumed to reach in training.

    A V100 computes bf16 as slowly as fp32. The speed in fp8 is assumed to be that of bf16, because only a
    part of the products is computed in FP8.
    precision: "fp32", "bf16", "fp16" or "fp8".
    """
    sheet = SHEETS[name]
    is_slow = precision == "fp32" or (name == "v100" and precision == "bf16")
    flops = sheet.fp32 if is_slow else sheet.half
    return DeviceRate(flops=REACHED_SHARE * flops, bytes=REACHED_SHARE * sheet.bytes, name=name)


class Hardware(NamedTuple):
    """Memory and speed of a run's devices, which are all equal.

    source: text that says where the figures come from. It is printed below the plan's table.
    memory: bytes per device.
    bandwidth: bytes per second between two devices, in each direction.
    """

    source: str
    rate: DeviceRate
    memory: int
    bandwidth: float


def find_hardware(given: str | None, config: Config) -> Hardware:
    """Return the hardware that the flag --hardware describes.

    Configured memory and bandwidth replace its figures.

    given: a device name in SHEETS, whose speeds are multiplied by REACHED_SHARE, or a number of TFLOP/s. None
        means the speeds of DEFAULT_DEVICE. Without a name, the memory must be configured.
    Raises SettingsError for an unknown name, a speed that is not above 0, or missing memory.
    """
    name, split = (given or DEFAULT_DEVICE).lower(), config.split
    sheet = SHEETS.get(name)
    memory = split.memory_bytes or (sheet.memory if sheet and given else None)
    if sheet:
        rate = find_sheet_rate(name, config.update.precision)
        words = f"computed for {name} at {REACHED_SHARE:.0%} of its data sheet"
    else:
        rate, words = _parse_rate(name), f"computed for devices of {name} TFLOP/s"
    if split.profile_layers:
        words = f"layers measured on device {config.run.device}"
    if memory is None:
        raise SettingsError("the memory of a device is missing: give --memory GB")
    bandwidth = split.bytes_per_second or REACHED_SHARE * (sheet or SHEETS[DEFAULT_DEVICE]).bandwidth
    source = f"{words}, {bandwidth / 1e9:,.4g} GB/s between devices"
    return Hardware(source, rate, memory, bandwidth)


def _parse_rate(text: str) -> DeviceRate:
    """Return the speeds of a device that reaches the number of TFLOP/s in the text."""
    try:
        flops = float(text) * 1e12
    except ValueError:
        flops = 0.0
    if not 0 < flops < float("inf"):
        raise SettingsError(
            f"--hardware is {text!r}, expected one of {', '.join(SHEETS)}, or the TFLOP/s that a device "
            "reaches"
        )
    return DeviceRate(flops=flops, bytes=flops / _FLOPS_PER_BYTE)
