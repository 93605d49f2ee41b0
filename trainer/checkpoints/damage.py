"""Finding checkpoints that a crash, a full disk or an incomplete copy has damaged, and intact checkpoints to
use instead.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertdata.errors import DataError
from trainer.checkpoints.checkpoint import State, find_checkpoints
from trainer.checkpoints.reading import check_file, read_state
from trainer.checkpoints.safetensors_files import read_places
from trainer.errors import CheckpointError


def find_fault(path: Path, *, reads_all: bool = False) -> str | None:
    """Check a checkpoint. Return the text of its first fault, or None if it is intact.

    The check reads the state and compares the length of each file with the file's header.
    reads_all: compare the md5 of each file too, for which all files are read completely.
    """
    try:
        state = read_state(path)
        for name in state.files:
            if reads_all:
                check_file(path, state, name)
            else:
                _check_length(path, name)
    except (DataError, OSError) as error:
        return str(error)
    return None


def _check_length(path: Path, name: str) -> None:
    """Raise an error if a file is missing, empty, or shorter than its header says."""
    file = path / name
    if not file.is_file():
        raise CheckpointError(f"{file}: is missing")
    if not os.path.getsize(file):
        raise CheckpointError(f"{file}: is damaged: it is empty")
    if name.endswith(".safetensors"):
        read_places(str(file))


def find_newest_whole(output_dir: str, before: int | None = None) -> int | None:
    """Return the number of a run's newest intact checkpoint, or None. Its files are read completely.

    before: consider only checkpoints older than this number.
    """
    for number, path in reversed(find_checkpoints(output_dir).items()):
        if (before is None or number < before) and find_fault(path, reads_all=True) is None:
            return number
    return None


def advise_on_resume(output_dir: str, damaged: int, flag: str = "--resume-step") -> str:
    """Return advice for the error about a damaged checkpoint: the flag that resumes from an intact
    checkpoint.

    damaged: number of the damaged checkpoint.
    flag: the flag that selects another checkpoint.
    """
    earlier = find_newest_whole(output_dir, damaged)
    if earlier is None:
        return "no earlier checkpoint is whole: begin a new run in another --output-dir"
    skips = ", as --resume --resume-skips-damaged does by itself" if flag == "--resume-step" else ""
    return f"{flag} {earlier} continues from the newest one that is whole{skips}"


@contextmanager
def add_remedy_to_errors(path: Path, state: State) -> Iterator[None]:
    """Add advice on resuming from another checkpoint to each CheckpointError that is raised in the block.

    path: the checkpoint that the block reads.
    state: the checkpoint's state.
    """
    try:
        yield
    except CheckpointError as error:
        if path.parent.name != "checkpoints":
            raise
        raise CheckpointError(f"{error}; {advise_on_resume(str(path.parent.parent), state.number)}") from None
