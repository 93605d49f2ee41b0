"""Units of axes: large and small numbers get another unit, so that an axis shows short numbers."""

_LARGE = ((1e9, "billions"), (1e6, "millions"), (1e3, "thousands"))
_LEAST_SHORTENED = 10
"""Numbers are counted in thousands from ten thousand on, in millions from ten million on, and so on."""
_SMALL = ((1e-3, "thousandths"), (1e-6, "millionths"), (1e-9, "billionths"))
_LEAST_OF_SMALL = 0.2
"""Numbers are counted in thousandths down to 0.2 thousandths, and so on."""
_LEAST_PLAIN = 0.01
"""Axes whose largest number is smaller than this show thousandths or less."""

_OWN_UNITS = {
    "bytes": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
    "seconds": ((1e-3, "milliseconds"), (1e-6, "microseconds")),
    "TFLOP/s per device": ((1e3, "PFLOP/s per device"), (1e-3, "GFLOP/s per device")),
}
"""Larger and smaller units, with their size, for the labels that are units themselves."""


def choose_unit(largest: float, label: str) -> tuple[float, str]:
    """Return the size of the unit in which an axis shows its numbers, and the axis's label with this unit.

    For example, for "tokens" up to 192,000 they are 1,000 and "tokens (thousands)".

    largest: the largest number on the axis.
    label: label of the axis for numbers in their own unit.
    """
    if label in _OWN_UNITS:
        return _choose_own_unit(largest, label)
    for size, name in _LARGE:
        if largest >= _LEAST_SHORTENED * size:
            return size, f"{label} ({name})"
    if 0 < largest < _LEAST_PLAIN:
        for size, name in _SMALL:
            if largest >= _LEAST_OF_SMALL * size:
                return size, f"{label} ({name})"
    return 1.0, label


def _choose_own_unit(largest: float, label: str) -> tuple[float, str]:
    """Return the size and the name of the unit for a label that is a unit itself, such as "bytes"."""
    units = _OWN_UNITS[label]
    for size, name in units:
        if size > 1 and largest >= size:
            return size, name
    smaller = [(size, name) for size, name in units if size < 1]
    if not smaller or largest >= 1 or largest <= 0:
        return 1.0, label
    return next(((size, name) for size, name in smaller if largest >= size), smaller[-1])
