"""The lines in a dllogger file that a resumed run keeps."""

from pathlib import Path
from typing import Any

from bertdata.io.json_text import parse_json_text
from trainer.logs.resumed_lines import drop_later_lines

PREFIX = "DLLL "
_START = "start_point"


def keep_lines(path: Path, resume_step: int) -> None:
    """Remove the lines of steps after ``resume_step``, because the resumed run writes them again.

    path: dllogger file.
    """
    drop_later_lines(path, resume_step, _parse_record, _begins_phase, _find_step)


def _parse_record(line: str) -> dict[str, Any]:
    """Return the JSON object of a line, or {} for lines of other programs."""
    try:
        found = parse_json_text(line.removeprefix(PREFIX)) if line.startswith(PREFIX) else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("data"), dict) else {}


def _begins_phase(record: dict[str, Any]) -> bool:
    """Return True for a line that a run writes only when it begins a phase at update 0."""
    start = record.get("data", {}).get(_START)
    return isinstance(start, str) and not start.startswith("resumed")


def _find_step(record: dict[str, Any]) -> int | None:
    """Return the update that a row, evaluation or checkpoint line belongs to, or None."""
    step = record.get("step")
    if step == "PARAMETER":
        step = [record["data"].get("checkpoint")]
    found = step[-1] if isinstance(step, list) and step else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
