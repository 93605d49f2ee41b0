"""Removal of later lines from a log with one JSON object per line, when a run resumes from an earlier
checkpoint.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertdata.io import storage

Record = dict[str, Any]


def drop_later_lines(
    path: Path,
    resume_step: int,
    parse: Callable[[str], Record],
    begins_run: Callable[[Record], bool],
    step_of: Callable[[Record], int | None],
) -> None:
    """Remove the lines of steps after ``resume_step`` from a log. The resumed run writes them again.

    A last line without a line end, which a crash cut off, is removed too. Lines of earlier runs in the same
    file stay, and so do lines of phase 1 if the run resumes in phase 2, although their steps are also counted
    from 0.
    parse: returns the JSON object of a line, or {} for a line that another program wrote.
    begins_run: returns True for a line that only a run starting at step 0 writes.
    step_of: returns the step that a line reports, or None for a line without a step.
    """
    whole = path.read_bytes().rpartition(b"\n")[0]
    lines = whole.decode(errors="surrogateescape").split("\n") if whole else []
    records = [parse(line) for line in lines]
    # The last line that marks the start of a run is the first line of this run, because a resumed run writes
    # no such line.
    begin = max((number for number, record in enumerate(records) if begins_run(record)), default=0)
    kept = lines[:begin]
    for line, record in zip(lines[begin:], records[begin:], strict=True):
        if (step_of(record) or 0) <= resume_step:
            kept.append(line)
    text = "".join(f"{line}\n" for line in kept).encode(errors="surrogateescape")
    if text != path.read_bytes():
        with storage.open_output(str(path)) as file:
            file.write(text)
