"""Comparison of the calls that a stand-in has recorded with a golden file."""

import difflib
from pathlib import Path

from tests.support.launching import ROOT

GOLDEN = ROOT / "golden" / "devices"


def compare(name: str, record: Path) -> None:
    """Raise AssertionError with the difference if the record is not equal to the golden file.

    Comments in the golden file are ignored: lines that begin with ``//``, and the text after two spaces and
    ``//``. So are empty lines.
    """
    expected = _lines((GOLDEN / f"{name}.txt").read_text("utf-8"))
    found = _lines(record.read_text("utf-8"))
    difference = "\n".join(difflib.unified_diff(expected, found, name, "recorded", lineterm=""))
    assert not difference, difference


def _lines(text: str) -> list[str]:
    lines = [line.split("  //")[0].rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("//")]
