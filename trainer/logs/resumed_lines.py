"""Cutting logs with one JSON object per line back to the checkpoint from which a run resumes."""

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
    """Remove from a log the lines of steps after ``resume_step``, which the resumed run writes again.

    A last line without its end, which a crash cut off, is removed too. Lines of earlier runs in the same
    file, and lines of phase 1 before phase 2, stay: their steps are also counted from 0.

    parse: returns a line's object, or an empty one for a line that another program wrote.
    begins_run: True for a line that only a run that starts at step 0 writes.
    step_of: returns the step that a line reports, None for a line without a step.
    """
    whole = path.read_bytes().rpartition(b"\n")[0]
    lines = whole.decode(errors="surrogateescape").split("\n") if whole else []
    records = [parse(line) for line in lines]
    # The lines of this run begin at the last line that marks the start of a run, since a resumed run does not
    # write such a line.
    begin = max((number for number, record in enumerate(records) if begins_run(record)), default=0)
    kept = lines[:begin]
    for line, record in zip(lines[begin:], records[begin:], strict=True):
        if (step_of(record) or 0) <= resume_step:
            kept.append(line)
    text = "".join(f"{line}\n" for line in kept).encode(errors="surrogateescape")
    if text != path.read_bytes():
        with storage.open_output(str(path)) as file:
            file.write(text)
