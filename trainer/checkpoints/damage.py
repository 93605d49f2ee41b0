"""Checkpoints that a crash, a full disk or a cut copy has damaged, and the whole ones beside them."""

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
    """The fault of a checkpoint in words, or None.

    Its state is read, and the lengths of its files are compared with their headers. reads_all: the md5 of
    each file is compared too, which reads them all.
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
    file = path / name
    if not file.is_file():
        raise CheckpointError(f"{file}: is missing")
    if not os.path.getsize(file):
        raise CheckpointError(f"{file}: is damaged: it is empty")
    if name.endswith(".safetensors"):
        read_places(str(file))


def find_newest_whole(output_dir: str, before: int | None = None) -> int | None:
    """The number of a run's newest checkpoint without a fault, all of whose bytes are read, or None.

    before: it is older than this one.
    """
    for number, path in reversed(find_checkpoints(output_dir).items()):
        if (before is None or number < before) and find_fault(path, reads_all=True) is None:
            return number
    return None


def remedy(output_dir: str, damaged: int, flag: str = "--resume-step") -> str:
    """What to type where a run's checkpoint of that number is damaged. flag: the one that names another."""
    earlier = find_newest_whole(output_dir, damaged)
    if earlier is None:
        return "no earlier checkpoint is whole: begin a new run in another --output-dir"
    skips = ", as --resume --resume-skips-damaged does by itself" if flag == "--resume-step" else ""
    return f"{flag} {earlier} continues from the newest one that is whole{skips}"


@contextmanager
def naming_remedy(path: Path, state: State) -> Iterator[None]:
    """The context of reading a run's checkpoint to resume from: errors name the remedy."""
    try:
        yield
    except CheckpointError as error:
        if path.parent.name != "checkpoints":
            raise
        raise CheckpointError(f"{error}; {remedy(str(path.parent.parent), state.number)}") from None
