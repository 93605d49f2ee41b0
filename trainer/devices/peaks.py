"""Peak speed of known cards for bf16 matrix products, according to their makers (without sparsity)."""

import re

_TERAFLOPS = {
    r"B200": 2250.0,
    r"H100.*PCIe": 756.0,
    r"H100 NVL|H200 NVL": 835.0,
    r"H100|H200|GH200": 989.0,
    r"A100": 312.0,
    r"L40S": 362.0,
    r"A30": 165.0,
    r"A10": 125.0,
    r"L4": 121.0,
    r"GAUDI2": 432.0,
}
"""Peak speed in 10^12 operations per second, by a pattern of the card's name. The first matching pattern
applies.
"""


def find_peak(description: str) -> float | None:
    """Return the peak speed of a card in operations per second, or None if it is not known.

    description: a device's description, which contains the card's name.
    """
    for pattern, rate in _TERAFLOPS.items():
        if re.search(rf"\b({pattern})\b", description):
            return rate * 1e12
    return None
