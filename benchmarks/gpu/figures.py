"""The figures file: each measured value is a line of JSON, written as soon as the value is known."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "figures.jsonl"

NOT_HERE = "not on a processor"
"""Reason that is written for a value which only a GPU has.

It is used in a rehearsal, a run with small sizes on a processor.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Writer of one step's lines in the figures file. Each line has the keys stage, step and context.

    folder: the output folder, in which the file is.
    context: name of the device and version of torch.
    """

    folder: Path
    stage: str
    step: str
    context: dict[str, str]

    def add(self, name: str, value: float, unit: str, **details: Any) -> None:
        """Write a measured value.

        details: further keys of the line.
        """
        self._write({"name": name, "value": value, "unit": unit, **details})

    def add_absent(self, name: str, reason: str) -> None:
        """Write that a value could not be measured, and the reason.

        name: name of the value.
        """
        self._write({"name": name, "absent": reason})

    def add_end(self, status: str, seconds: float, **details: Any) -> None:
        """Write how the step ended.

        status: "done", "failed", "timed out" or "left out".
        details: further keys of the line.
        """
        self._write({"status": status, "seconds": round(seconds, 1), **details})

    def _write(self, line: dict[str, Any]) -> None:
        """Append a line to the file."""
        about = {"stage": self.stage, "step": self.step}
        text = json.dumps({**about, **line, "context": self.context}) + "\n"
        with open(
            self.folder / NAME,
            "a",
            encoding="utf-8",
            # The file is opened for appending, because several steps may write to it at the same time.
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def read_figures(folder: Path, start: int = 0) -> list[dict[str, Any]]:
    """Return the lines of the figures file. The result is empty if there is no file.

    start: number of bytes at the beginning of the file to skip.
    """
    try:
        with open(folder / NAME, "rb") as file:
            file.seek(start)
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def file_size(folder: Path) -> int:
    """Return the size of the figures file in bytes, or 0 if it does not exist."""
    path = folder / NAME
    return path.stat().st_size if path.exists() else 0


def find_value(folder: Path, step: str, name: str) -> float | None:
    """Return the value with this name that the step has written last, or None if there is none."""
    found = [
        float(line["value"])
        for line in read_figures(folder)
        if (line["step"], line.get("name")) == (step, name) and "value" in line
    ]
    return found[-1] if found else None
