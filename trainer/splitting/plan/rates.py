"""Rates of devices: what they compute and move in a second, and the hardware of a name."""

from dataclasses import dataclass
from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.config.settings import Config

REACHED = 0.5
"""The share of a data sheet's figures that training is taken to reach."""

USUAL = "a100"
"""The device whose rates are taken where none is known."""

_FLOPS_A_BYTE = 150  # of a device's own memory, as those of SHEETS have at 16 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceRate:
    """The rates of one device at one precision, in training. Both are greater than 0."""

    flops: float  # floating-point operations a second, of matrix products
    bytes: float  # bytes a second, read and written in its own memory
    name: str = "given"

    def seconds(self, flops: float, moved: float) -> float:
        """The time of so many operations and so many bytes read and written."""
        return flops / self.flops + moved / self.bytes


class ShardingRate(NamedTuple):
    """Bytes a second of sharded copies that all run at the same time.

    forward: of weights that each receives in a forward pass; backward: of weights that it receives and
    gradients that it sends in a backward pass.
    """

    forward: float
    backward: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """Figures of a device's data sheet.

    fp32: matrix products of fp32 numbers as the trainer makes them, with TF32 where there is such.
    """

    memory: int  # bytes
    fp32: float  # FLOP/s, without sparsity
    half: float  # FLOP/s of bf16 and fp16, without sparsity
    bytes: float  # bytes a second of its memory
    bandwidth: float  # bytes a second to other devices of the same machine, in one direction


SHEETS = {
    "v100": Sheet(memory=32 * 10**9, fp32=15.7e12, half=125e12, bytes=900e9, bandwidth=150e9),
    "a100": Sheet(memory=80 * 10**9, fp32=156e12, half=312e12, bytes=2039e9, bandwidth=300e9),
    "h100": Sheet(memory=80 * 10**9, fp32=495e12, half=989e12, bytes=3350e9, bandwidth=450e9),
    "h200": Sheet(memory=141 * 10**9, fp32=495e12, half=989e12, bytes=4800e9, bandwidth=450e9),
    "gaudi2": Sheet(memory=96 * 10**9, fp32=216e12, half=432e12, bytes=2450e9, bandwidth=262.5e9),
}
"""Makers' figures (NVIDIA's SXM modules; Intel's Gaudi 2, whose fp32 is taken as half of its bf16)."""


def sheet_rate(name: str, precision: str) -> DeviceRate:
    """The rate of a device of SHEETS at "fp32", "bf16" or "fp16": a share of the sheet's figures.

    V100 computes bf16 at the rate of fp32.
    """
    sheet = SHEETS[name]
    is_slow = precision == "fp32" or (name == "v100" and precision == "bf16")
    flops = sheet.fp32 if is_slow else sheet.half
    return DeviceRate(flops=REACHED * flops, bytes=REACHED * sheet.bytes, name=name)


class Hardware(NamedTuple):
    """Devices that are all alike. memory: bytes of one. bandwidth: bytes a second between two, each way.

    source: words for a plan's table.
    """

    source: str
    rate: DeviceRate
    memory: int
    bandwidth: float


def find_hardware(given: str | None, config: Config) -> Hardware:
    """The hardware of a name in SHEETS, or of a number of TFLOP/s, with the configured memory and bandwidth.

    Of a name REACHED of the data sheet's rates are taken; without one USUAL's, but then memory must be
    given. SettingsError for an unknown name, a rate of nothing, or memory that is missing.
    """
    name, split = (given or USUAL).lower(), config.split
    sheet = SHEETS.get(name)
    memory = split.memory_bytes or (sheet.memory if sheet and given else None)
    if sheet:
        rate = sheet_rate(name, config.update.precision)
        words = f"computed for {name} at {REACHED:.0%} of its data sheet"
    else:
        rate, words = _given_rate(name), f"computed for devices of {name} TFLOP/s"
    if split.profile_layers:
        words = f"layers measured on device {config.run.device}"
    if memory is None:
        raise SettingsError("the memory of a device is missing: give --memory GB")
    bandwidth = split.bytes_per_second or REACHED * (sheet or SHEETS[USUAL]).bandwidth
    source = f"{words}, {bandwidth / 1e9:,.4g} GB/s between devices"
    return Hardware(source, rate, memory, bandwidth)


def _given_rate(text: str) -> DeviceRate:
    """The rate of a device that reaches so many TFLOP/s."""
    try:
        flops = float(text) * 1e12
    except ValueError:
        flops = 0.0
    if not 0 < flops < float("inf"):
        wanted = f"expected one of {', '.join(SHEETS)}, or the TFLOP/s that a device reaches"
        raise SettingsError(f"--hardware is {text!r}, {wanted}")
    return DeviceRate(flops=flops, bytes=flops / _FLOPS_A_BYTE)
