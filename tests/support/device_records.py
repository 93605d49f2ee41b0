"""Comparison of a stand-in's record with a golden file."""

import difflib
from pathlib import Path

from tests.support.launching import ROOT

GOLDEN = ROOT / "golden" / "devices"


def compare(name: str, record: Path) -> None:
    """AssertionError with the difference unless the record is the golden file, comments left out.

    A golden file may explain: what follows two spaces and ``//`` on a line, and a line that begins with
    ``//``. Empty lines count for nothing.
    """
    expected = _lines((GOLDEN / f"{name}.txt").read_text("utf-8"))
    found = _lines(record.read_text("utf-8"))
    difference = "\n".join(difflib.unified_diff(expected, found, name, "recorded", lineterm=""))
    assert not difference, difference


def _lines(text: str) -> list[str]:
    lines = [line.split("  //")[0].rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("//")]
