"""Removal of lines from a dllogger file when a run resumes from an earlier checkpoint."""

from pathlib import Path
from typing import Any

from bertdata.io.json_text import parse_json_text
from trainer.logs.resumed_lines import drop_later_lines

PREFIX = "DLLL "
_START = "start_point"


def drop_lines_after(path: Path, resume_step: int) -> None:
    """Remove the lines of steps after ``resume_step`` from a dllogger file. The resumed run writes them
    again.
    """
    drop_later_lines(path, resume_step, _parse_record, _begins_phase, _find_step)


def _parse_record(line: str) -> dict[str, Any]:
    """Return the JSON object of a dllogger line, or {} for a line that another program wrote."""
    try:
        found = parse_json_text(line.removeprefix(PREFIX)) if line.startswith(PREFIX) else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("data"), dict) else {}


def _begins_phase(record: dict[str, Any]) -> bool:
    """Return True for the line with which a run begins a phase at update 0. A resumed run writes no line that
    begins a phase.
    """
    start = record.get("data", {}).get(_START)
    return isinstance(start, str) and not start.startswith("resumed")


def _find_step(record: dict[str, Any]) -> int | None:
    """Return the number of the update that a line is about, or None.

    Lines about an update report a row of the log, an evaluation or a checkpoint.
    """
    step = record.get("step")
    if step == "PARAMETER":
        step = [record["data"].get("checkpoint")]
    found = step[-1] if isinstance(step, list) and step else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
