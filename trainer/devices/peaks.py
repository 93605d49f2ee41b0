"""Peak rates of known cards: matrix products in bf16, dense, as their makers state them."""

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
"""10^12 operations a second, by a pattern of the card's name; the first that fits counts."""


def find_peak(description: str) -> float | None:
    """Operations a second of the card that a device's description names, or None for an unknown one."""
    for pattern, rate in _TERAFLOPS.items():
        if re.search(rf"\b({pattern})\b", description):
            return rate * 1e12
    return None
