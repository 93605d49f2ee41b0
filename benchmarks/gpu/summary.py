"""Summary of the measured values of a run, for a terminal or for the end of a log."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any


def summarise(lines: Iterable[dict[str, Any]]) -> list[str]:
    """Return the lines of the summary.

    For each step they are a heading, its values, the values that are absent, and the error if it failed.

    lines: lines of the figures file.
    """
    shown = []
    ordered = sorted(lines, key=lambda line: (line["stage"], line["step"]))
    for (stage, step), found in groupby(ordered, key=lambda line: (line["stage"], line["step"])):
        about = list(found)
        ends = [line for line in about if "status" in line]
        shown.append(f"{stage}: {step}{''.join(f', {_describe_end(line)}' for line in ends)}")
        shown += [
            f"    {line['name']}: {_format_number(line['value'])} {line['unit']}"
            for line in about
            if "value" in line
        ]
        absent = [line for line in about if "absent" in line]
        shown += [f"    {line.get('name', '')}: {line['absent']}" for line in absent]
        errors = [line["error"] for line in ends if "error" in line]
        shown += [f"    ! {part[:200]}" for error in errors for part in error.splitlines()]
    return shown


def _describe_end(line: dict[str, Any]) -> str:
    """Return the words that say how a step ended and how long it took."""
    return f"{line['status']} in {line['seconds']:.0f} s"


def _format_number(value: float) -> str:
    """Return a number as text with a few significant digits."""
    if value >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.4g}"
