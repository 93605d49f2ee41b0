"""The figures file: lines of JSON, each written out as soon as its value is known."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "figures.jsonl"

NOT_HERE = "not on a processor"
"""Why a figure of a GPU is absent in a rehearsal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Writer of one step's lines. Each has stage, step and context.

    folder: the output folder, which holds the file. context: description of the device, and torch's version.
    """

    folder: Path
    stage: str
    step: str
    context: dict[str, str]

    def add(self, name: str, value: float, unit: str, **details: Any) -> None:
        """Write one figure. details: more keys of its line."""
        self._write({"name": name, "value": value, "unit": unit, **details})

    def absent(self, name: str, reason: str) -> None:
        """Write that there is no figure of this name, and why."""
        self._write({"name": name, "absent": reason})

    def ended(self, status: str, seconds: float, **details: Any) -> None:
        """Write the end of the step: "done", "failed", "timed out" or "left out"."""
        self._write({"status": status, "seconds": round(seconds, 1), **details})

    def _write(self, line: dict[str, Any]) -> None:
        about = {"stage": self.stage, "step": self.step}
        text = json.dumps({**about, **line, "context": self.context}) + "\n"
        with open(self.folder / NAME, "a", encoding="utf-8") as file:  # several steps may write at a time
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def read_figures(folder: Path, start: int = 0) -> list[dict[str, Any]]:
    """The lines from that byte of the file on, or none where it is missing."""
    try:
        with open(folder / NAME, "rb") as file:
            file.seek(start)
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def file_size(folder: Path) -> int:
    """Bytes of the figures file, or 0 where it is missing."""
    path = folder / NAME
    return path.stat().st_size if path.exists() else 0


def find_value(folder: Path, step: str, name: str) -> float | None:
    """The newest value of a figure, or None."""
    found = [
        float(line["value"])
        for line in read_figures(folder)
        if (line["step"], line.get("name")) == (step, name) and "value" in line
    ]
    return found[-1] if found else None
