"""The devices that a plan is made for: their rates, memory and bandwidth."""

from typing import NamedTuple

from bertdata.errors import SettingsError
from trainer.config.settings import Config
from trainer.extensions.splitting.plan.rates import REACHED, SHEETS, DeviceRate, sheet_rate

DEFAULT = "a100"
_FLOPS_A_BYTE = 150  # of its own memory, as the sheets' devices have at 16 bits


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

    Of a name REACHED of the data sheet's rates are taken; without one DEFAULT's, but then memory must be
    given. SettingsError for an unknown name, a rate of nothing, or memory that is missing.
    """
    name, split = (given or DEFAULT).lower(), config.split
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
    bandwidth = split.bytes_per_second or REACHED * (sheet or SHEETS[DEFAULT]).bandwidth
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
