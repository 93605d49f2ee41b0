"""The lines in a dllogger file that a resumed run keeps."""

from pathlib import Path
from typing import Any

from bertdata.io import storage
from bertdata.io.json_text import parse_json_text

PREFIX = "DLLL "
_START = "start_point"


def keep_lines(path: Path, resume_step: int) -> None:
    """Remove lines of updates after the resumed one, which will be made again, and an incomplete last line.

    Lines from before the phase began are kept, because its updates are counted from 0 again.
    """
    whole = path.read_bytes().rpartition(b"\n")[0]  # a crash may have cut off the last line
    lines = whole.decode(errors="surrogateescape").split("\n") if whole else []
    records = [_record(line) for line in lines]
    begun = max((number for number, record in enumerate(records) if _begins_phase(record)), default=0)
    kept = lines[:begun]
    kept += [
        line
        for line, record in zip(lines[begun:], records[begun:], strict=True)
        if (_step(record) or 0) <= resume_step
    ]
    text = "".join(f"{line}\n" for line in kept).encode(errors="surrogateescape")
    if text != path.read_bytes():
        with storage.open_output(str(path)) as file:
            file.write(text)


def _record(line: str) -> dict[str, Any]:
    """Return the JSON object of a line, or {} for lines of other programs."""
    try:
        found = parse_json_text(line.removeprefix(PREFIX)) if line.startswith(PREFIX) else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("data"), dict) else {}


def _begins_phase(record: dict[str, Any]) -> bool:
    """Return True if a run writes this line when it begins a phase without resuming."""
    start = record.get("data", {}).get(_START)
    return isinstance(start, str) and not start.startswith("resumed")


def _step(record: dict[str, Any]) -> int | None:
    """Return the update that a row, evaluation or checkpoint line belongs to, or None."""
    step = record.get("step")
    if step == "PARAMETER":
        step = [record["data"].get("checkpoint")]
    found = step[-1] if isinstance(step, list) and step else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
